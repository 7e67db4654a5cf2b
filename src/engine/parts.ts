/** What a worker, a receiver or a test takes from a client. Not public: reached by a symbol, not by a name. */
import type { ClientConfig } from '../core/config.ts'
import { ChokaQError } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import type { Runtime } from '../core/runtime.ts'
import type { StorageDriver } from '../core/storage.ts'
import type { Tracing } from '../core/tracing.ts'

export interface ChokaQParts {
  readonly driver: StorageDriver
  readonly runtime: Runtime
  readonly config: ClientConfig
  readonly events: EventBus
  readonly tracing: Tracing
  readonly location: string
}

export const partsSymbol: unique symbol = Symbol.for('chokaq.parts') as never

/** Of what createChokaQ or createWorker returned. */
export function partsOf(chokaq: object): ChokaQParts {
  const parts = (chokaq as { readonly [partsSymbol]?: ChokaQParts })[partsSymbol]
  if (parts === undefined) {
    throw new ChokaQError('CHOKAQ_CONFIG_INVALID', { problem: 'chokaq must be what createChokaQ returned.' })
  }
  return parts
}
