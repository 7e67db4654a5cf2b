/** The Deck on what a run left behind: the kills and what they cost, to look at. */
import { describeFailure, failureText } from '../../core/failure.ts'
import { createDeck } from '../../deck/index.ts'
import { createChokaQ } from '../../engine/enqueue/client.ts'
import { DeckServer } from '../deck-server.ts'
import type { CliIo } from '../io.ts'
import type { Screen } from './screen.ts'
import { type ShopPlace, storageAt } from './shop.ts'

/** Until a signal comes. */
export async function showDeck(shop: ShopPlace, screen: Screen, io: CliIo): Promise<void> {
  const chokaq = createChokaQ({ storage: storageAt(shop) })
  const onError = (error: unknown): void => {
    screen.line(failureText(describeFailure(error)))
  }
  const deck = createDeck({ chokaq, onError, localActor: io.userName })
  try {
    const server = await DeckServer.open('127.0.0.1', 0, deck, onError)
    try {
      screen.line(`\nthe Deck is at ${server.url} (Ctrl-C ends it)`)
      await new Promise<void>((resolve) => {
        const forget = io.onSignal(() => {
          forget()
          resolve()
        })
      })
    } finally {
      await server.close()
    }
  } finally {
    await deck.close()
    await chokaq.close()
  }
}
