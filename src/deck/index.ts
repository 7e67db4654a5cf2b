/** 'chokaq/deck': see it, and repair it safely. A web-standard handler with a page, an API and live updates. */
import { createRequire } from 'node:module'
import { partsOf } from '../engine/parts.ts'
import type { DeckParts } from './context.ts'
import { Gate } from './gate.ts'
import { type DeckHandler, deckHandler } from './handler.ts'
import { Live } from './live.ts'
import { type DeckOptions, resolveDeckOptions } from './options.ts'
import { openReads } from './reads.ts'

export type { RequestInfo } from '../http/node.ts'
export type { AuthCallback, DeckIdentity, DeckLimits, DeckOptions, DeckToken } from './options.ts'
export type { RedactedPart, RedactFunction } from './redact.ts'
export type { Role } from './wire.ts'

/** A web-standard request handler: a route of Hono, Next.js, Bun or Deno as it is, of Node through toNodeListener. */
export interface Deck extends DeckHandler {
  /** Ends the event streams and what reads for the Deck; the client stays open. */
  close(): Promise<void>
}

/**
 * The Deck over one client. Without `auth` it lets in only direct requests of this machine: everything else is answered
 * 403 until you say whom to trust. Costs nothing until the first request.
 *
 * @example
 * const deck = createDeck({ chokaq, redact: ['card.number', '**.email'] })
 * createServer(toNodeListener(deck)).listen(4680)
 *
 * @throws CHOKAQ_CONFIG_INVALID, CHOKAQ_OPTION_INVALID
 */
export function createDeck(options: DeckOptions): Deck {
  const config = resolveDeckOptions(options)
  const { chokaq, maxEventStreams, onError } = config
  const { runtime } = partsOf(chokaq)
  const opened = openReads(config)
  const { reads } = opened
  const live = new Live({ reads, runtime, maxStreams: maxEventStreams, onError })
  const parts: DeckParts = {
    config,
    chokaq,
    reads,
    live,
    gate: new Gate(config, runtime),
    runtime,
    version: packageVersion(),
  }
  const handler = deckHandler(parts)
  return Object.assign((...asked: Parameters<DeckHandler>) => handler(...asked), {
    async close() {
      live.close()
      await opened.close()
    },
  })
}

/** By name and not by path, because the file that asks is somewhere else once it is built. */
function packageVersion(): string {
  try {
    const manifest: unknown = createRequire(import.meta.url)('chokaq/package.json')
    return (manifest as { readonly version: string }).version
  } catch {
    return 'unknown' // bundled into an application
  }
}
