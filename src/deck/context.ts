/** What a route gets: who asks, and with what it answers. */
import type { Actor } from '../core/inspector.ts'
import type { Runtime } from '../core/runtime.ts'
import type { ChokaQ } from '../engine/enqueue/client.ts'
import type { Gate } from './gate.ts'
import type { Live } from './live.ts'
import type { DeckConfig, DeckIdentity } from './options.ts'
import type { DeckReads } from './reads.ts'

/** One of each for the whole Deck. */
export interface DeckParts {
  readonly config: DeckConfig
  readonly chokaq: ChokaQ
  readonly reads: DeckReads
  readonly live: Live
  readonly gate: Gate
  readonly runtime: Runtime
  readonly version: string
}

export interface Context extends DeckParts {
  readonly identity: DeckIdentity
  /** For the audit log. */
  by(note: string): Actor
}

export function contextFor(parts: DeckParts, identity: DeckIdentity): Context {
  return { ...parts, identity, by: (note) => ({ actor: identity.actor, note }) }
}
