// The Deck over a real database of each kind, behind a port of its own.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createChokaQ, type ChokaQ, type Storage } from 'chokaq'
import { createDeck, type DeckOptions } from 'chokaq/deck'
import { postgres } from 'chokaq/postgres'
import { sqlite } from 'chokaq/sqlite'
import { DeckServer } from '../../../src/cli/deck-server.ts'
import { createDatabase } from '../../postgres/database.ts'

export interface DeckPlace {
  readonly chokaq: ChokaQ
  readonly url: string
  /** As if the server had died: streams break, and nobody answers. */
  stop(): Promise<void>
  /** Again at the same address. */
  start(): Promise<void>
  close(): Promise<void>
}

export interface DeckStorage {
  readonly name: 'sqlite' | 'postgres'
  open(options?: Partial<DeckOptions>): Promise<DeckPlace>
}

interface OpenStorage {
  readonly storage: Storage
  remove(): Promise<void>
}

/** Memory that looks like a disk, where there is any: nothing here tests the loss of power. */
const fastFolder = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

async function onFile(): Promise<OpenStorage> {
  const folder = mkdtempSync(join(fastFolder, 'chokaq-deck-'))
  const remove = async (): Promise<void> => rmSync(folder, { recursive: true, force: true })
  return { storage: sqlite(join(folder, 'shop.db')), remove }
}

async function onServer(): Promise<OpenStorage> {
  const database = await createDatabase()
  return { storage: postgres(database.url), remove: () => database.drop() }
}

export const deckStorages: readonly DeckStorage[] = [
  { name: 'sqlite', open: (options) => openPlace(onFile, options) },
  { name: 'postgres', open: (options) => openPlace(onServer, options) },
]

async function openPlace(make: () => Promise<OpenStorage>, options: Partial<DeckOptions> = {}): Promise<DeckPlace> {
  const { storage, remove } = await make()
  const chokaq = createChokaQ({ storage })
  await chokaq.ready()
  const deck = createDeck({ chokaq, ...options })
  let server = await DeckServer.open('127.0.0.1', 0, deck, () => undefined)
  const { url } = server
  return {
    chokaq,
    url,
    stop: () => server.close(),
    async start() {
      server = await DeckServer.open('127.0.0.1', Number(new URL(url).port), deck, () => undefined)
    },
    async close() {
      await server.close()
      await deck.close()
      await chokaq.close()
      await remove()
    },
  }
}
