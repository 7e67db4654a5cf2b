/** What outlives an incarnation of a worker and is lent to each. */
import type { ClientConfig, WorkerConfig } from '../core/config.ts'
import type { Middleware } from '../core/ctx.ts'
import type { EventBus } from '../core/events.ts'
import { toJsonText } from '../core/json-image.ts'
import type { LedgerRequest, LedgerVerdict } from '../core/ledger.ts'
import type { Runtime } from '../core/runtime.ts'
import type { StorageDriver } from '../core/storage.ts'
import type { Tracing } from '../core/tracing.ts'
import type { Slots } from './process/slots.ts'
import type { RegisteredTypes } from './worker-types.ts'

export interface WorkerCore {
  readonly driver: StorageDriver
  readonly runtime: Runtime
  readonly events: EventBus
  readonly tracing: Tracing
  readonly client: ClientConfig
  readonly config: WorkerConfig
  readonly name: string
  readonly queues: readonly string[]
  readonly types: RegisteredTypes
  readonly middleware: readonly Middleware[]
  readonly slots: Slots
  /** Intents and outcomes of all attempts share statements. */
  readonly ledger: Ledger
}

export type Ledger = (request: LedgerRequest) => Promise<LedgerVerdict>

/** Who an attempt is, for its events. */
export interface AttemptIdentity {
  readonly jobId: string
  readonly type: string
  readonly queue: string
  readonly workerId: string
  readonly attempt: number
}

/** JSON text of what a handler wants stored, within the limit of results. */
export function jsonTextFor({
  runtime,
  config,
}: Pick<WorkerCore, 'runtime' | 'config'>): (value: unknown, what: string) => string {
  const limits = { maxBytes: config.maxResultBytes, byteLength: (text: string) => runtime.byteLength(text) }
  return (value, what) => toJsonText(value, what, limits)
}
