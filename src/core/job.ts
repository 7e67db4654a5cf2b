/**
 * A job in its three pillars: hot (active), archive (finished) and DLQ (dead). Three tables, three types, because they
 * answer three questions: what is to do, what was done, what needs a person.
 */
import type { StoredFailure } from './failure.ts'
import type { Lease } from './lease.ts'

export const hotStates = ['scheduled', 'pending', 'fetched', 'processing'] as const
/** `scheduled` waits for its time, `pending` for a worker, `fetched` for its start, `processing` runs. */
export type HotState = (typeof hotStates)[number]

export const archiveOutcomes = ['completed', 'skipped', 'cancelled'] as const
export type ArchiveOutcome = (typeof archiveOutcomes)[number]

export const deadReasons = [
  'MaxRetriesExceeded',
  'FatalError',
  'Timeout',
  'Interrupted',
  'RetryLifetimeExpired',
  'Rejected',
  'InDoubt',
  'CompleteConflict',
  'KeyReused',
  'EmptyKey',
  'ReviewRequested',
] as const
/** Why a job is in the DLQ. */
export type DeadReason = (typeof deadReasons)[number]

export type Pillar = 'hot' | 'archive' | 'dlq'

/** A business key as it is stored: the hash guards, the prefix is for people. */
export interface JobKey {
  /** keyHash() of tenant, scope and key: 64 hexadecimal digits. */
  readonly hash: string
  /** The first characters of the key, readable. */
  readonly prefix: string
  readonly scope: string
}

/** When a new job is due. A delay is added to the storage's own clock. */
export type Due =
  | { readonly kind: 'now' }
  | { readonly kind: 'in'; readonly delayMs: number }
  | { readonly kind: 'at'; readonly atMs: number }

/** A job on its way into the storage. Made and validated by the producer, its id included. */
export interface NewJob {
  readonly id: string
  readonly type: string
  readonly queue: string
  /** JSON text, kept exactly. */
  readonly payload: string
  /** -1000 to 1000; a higher number runs first. */
  readonly priority: number
  readonly due: Due
  readonly tenant: string | undefined
  /** Undefined for a type without a key, and for a raw enqueue, whose key the worker computes. */
  readonly key: JobKey | undefined
  readonly fingerprint: string | undefined
  readonly tags: readonly string[]
  readonly traceContext: string | undefined
  /** True where the id came from the caller: the same job may be stored already, in any pillar. */
  readonly mayExist: boolean
  /** The job whose handler enqueued this one. */
  readonly parentId: string | undefined
  /** Of a child with a derived id: the id under which it waits for a person where another job is stored under its own. */
  readonly spareId?: string
}

/** A fetched job as the worker gets it. */
export interface FetchedJob {
  readonly lease: Lease
  /** `processing` where the fetch itself started it (fast start). */
  readonly state: 'fetched' | 'processing'
  readonly type: string
  readonly queue: string
  readonly payload: string
  readonly priority: number
  readonly tags: readonly string[]
  readonly tenant: string | undefined
  readonly key: JobKey | undefined
  readonly fingerprint: string | undefined
  readonly generation: number
  /** Starts so far; with a fast start, this one included. */
  readonly attempt: number
  readonly failureCount: number
  readonly crashCount: number
  /** It was running when a worker died: one at a time in each worker. */
  readonly suspect: boolean
  readonly createdAtMs: number
  /** When it became due. */
  readonly runAtMs: number
  readonly firstStartedAtMs: number | undefined
  readonly traceContext: string | undefined
}

/** What operators see of a job, whatever pillar it is in. Absent fields are null. */
export interface JobRecord {
  readonly id: string
  readonly pillar: Pillar
  /** HotState in hot, ArchiveOutcome in archive, 'dead' in the DLQ. */
  readonly state: HotState | ArchiveOutcome | 'dead'
  readonly type: string
  readonly queue: string
  /** JSON text; null where `keep` dropped it. */
  readonly payload: string | null
  readonly result: string | null
  readonly priority: number
  readonly tags: readonly string[]
  readonly tenant: string | null
  readonly keyHash: string | null
  readonly keyPrefix: string | null
  readonly keyScope: string | null
  readonly fingerprint: string | null
  readonly generation: number
  readonly attempt: number
  readonly failureCount: number
  readonly crashCount: number
  readonly fetchCrashCount: number
  readonly token: number
  readonly workerId: string | null
  readonly reason: DeadReason | null
  /** The last failure, in full. */
  readonly failure: StoredFailure | null
  /** Text of appendHistory(): the last failures. */
  readonly history: string | null
  readonly duplicateOf: string | null
  readonly parentId: string | null
  /** The tracing context that came with it, W3C traceparent. */
  readonly traceContext: string | null
  readonly createdAtMs: number
  readonly runAtMs: number
  readonly fetchedAtMs: number | null
  readonly startedAtMs: number | null
  readonly firstStartedAtMs: number | null
  readonly finishedAtMs: number | null
  readonly cancelRequestedAtMs: number | null
  /** Rises with every operator act on a dead job; guards against a second operator. */
  readonly revision: number
  /** The key's marker says in doubt for this job: only a review decision ends it. */
  readonly inDoubt: boolean
}
