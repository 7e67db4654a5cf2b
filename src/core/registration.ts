/** What a worker tells the storage of itself and of its types when it starts. */
import type { ProcessIdentity } from './runtime.ts'

export interface WorkerInfo {
  readonly id: string
  readonly name: string
  readonly identity: ProcessIdentity
  readonly queues: readonly string[]
  readonly types: readonly string[]
  readonly concurrency: number
}

/** A type's answers as CLI and Deck know them without the code. Texts are JSON. */
export interface JobTypeRow {
  readonly type: string
  readonly queue: string
  readonly keyed: boolean
  readonly keyScope: string
  readonly allowRaw: boolean
  /** JSON of the answers (see core/handler.ts). */
  readonly answers: string
  /** JSON Schema of the payload; null where the schema library gives none. */
  readonly payloadSchema: string | null
}
