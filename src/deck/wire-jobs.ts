/** Jobs, acts on them and reviews, as the Deck's server and its page exchange them. The addresses stand in wire.ts. */
import type { AuditView } from './wire.ts'

export type PillarView = 'hot' | 'archive' | 'dlq'

/** All strings, as they stand in the page's address. */
export interface JobFilterView {
  readonly type?: string
  readonly queue?: string
  /** Start of the business key. */
  readonly key?: string
  readonly tag?: string
  /** A state of hot, or an outcome of the archive. */
  readonly state?: string
  /** DLQ only. */
  readonly reason?: string
  /** DLQ only: '1' for jobs that wait for a person. */
  readonly review?: string
  /** Created at or after / before, milliseconds since 1970. */
  readonly from?: string
  readonly before?: string
}

export interface JobSummary {
  readonly id: string
  readonly pillar: PillarView
  readonly state: string
  readonly type: string
  readonly queue: string
  readonly key: string | null
  readonly tags: readonly string[]
  readonly priority: number
  readonly attempt: number
  readonly failureCount: number
  readonly crashCount: number
  readonly reason: string | null
  readonly inDoubt: boolean
  /** The last failure, one line. */
  readonly message: string | null
  readonly createdAtMs: number
  readonly runAtMs: number
  readonly startedAtMs: number | null
  readonly finishedAtMs: number | null
}

export interface JobPageView {
  readonly jobs: readonly JobSummary[]
  readonly nextCursor: string | null
}

/** Counting stops at `limit`: `isExact` is false then, and the page shows "10,000+". */
export interface JobCount {
  readonly count: number
  readonly isExact: boolean
}

/** One line of a job's story, oldest first. */
export interface TimelineEntry {
  readonly atMs: number
  readonly kind:
    | 'enqueued'
    | 'due'
    | 'started'
    | 'failed'
    | 'crashed'
    | 'intent'
    | 'outcome'
    | 'finished'
    | 'dead'
    | 'duplicate'
    | 'cancel-requested'
    | 'operator'
  readonly title: string
  readonly detail: string | null
  readonly attempt: number | null
  readonly tone: 'neutral' | 'good' | 'warning' | 'bad'
}

export interface EffectView {
  readonly id: string
  readonly kind: 'effect' | 'compensation' | 'memo' | 'checkpoint'
  readonly name: string
  readonly item: string
  readonly state: string
  readonly provider: string
  readonly providerKey: string | null
  readonly generation: number
  readonly attempt: number
  readonly workerId: string
  readonly openedAtMs: number
  readonly closedAtMs: number | null
  /** JSON text, redacted. */
  readonly input: string
  readonly result: string | null
  readonly error: ErrorView | null
  readonly ownerGone: boolean
  readonly replayed: boolean
}

export interface ErrorView {
  readonly name: string
  readonly message: string
  readonly code: string | null
  readonly stack: string | null
  readonly atMs: number | null
  readonly attempt: number | null
}

export interface MarkerView {
  readonly state: 'completed' | 'in_doubt' | 'terminal' | 'compensated'
  readonly jobId: string
  readonly generation: number
  readonly expiresAtMs: number | null
}

/** What the session's role may do with this job now; `why` says why not, for a disabled button. */
export interface ActView {
  readonly act: JobAct
  readonly allowed: boolean
  readonly why: string | null
}
export type JobAct = 'cancel' | 'retry-now' | 'resurrect-continue' | 'resurrect-new' | 'edit' | 'purge' | 'review'

export interface JobDetail {
  readonly job: JobSummary & {
    readonly tenant: string | null
    readonly keyHash: string | null
    readonly keyScope: string | null
    readonly generation: number
    readonly revision: number
    readonly workerId: string | null
    readonly parentId: string | null
    readonly duplicateOf: string | null
    readonly traceId: string | null
    /** JSON text, redacted, at most 256 kB; null where `keep` dropped it. */
    readonly payload: string | null
    readonly payloadIsCut: boolean
    readonly result: string | null
  }
  readonly timeline: readonly TimelineEntry[]
  /** Newest first. */
  readonly errors: readonly ErrorView[]
  readonly effects: readonly EffectView[]
  readonly marker: MarkerView | null
  readonly duplicates: readonly JobSummary[]
  readonly audit: readonly AuditView[]
  /** JSON Schema of the payload, JSON text; null where none is known. */
  readonly payloadSchema: string | null
  readonly acts: readonly ActView[]
}

export interface ActRequest {
  readonly note: string
  /** Purge only: the job's id, typed by the person. */
  readonly confirm?: string
}

export interface ResurrectActRequest extends ActRequest {
  readonly mode: 'continue' | 'new-operation'
  /** JSON text that replaces the payload; admin only. */
  readonly payload?: string
  /** A new operation of a job in doubt: where the person looked, and that it did not happen. */
  readonly absence?: string
  readonly revision: number
}

export interface ActAnswer {
  readonly done: boolean
  /** One sentence: what happened, or why nothing did. */
  readonly title: string
}

export interface PayloadCheck {
  readonly ok: boolean
  /** `path` is such as `amountCents`; '' for the whole. */
  readonly errors: readonly { readonly path: string; readonly message: string }[]
}

export const bulkActs = ['cancel', 'retry-now', 'resurrect', 'purge'] as const
export type BulkAct = (typeof bulkActs)[number]

/** cancel and retry-now act on hot, resurrect (continue) and purge on the DLQ. */
export interface BulkTarget {
  readonly act: BulkAct
  readonly filter: JobFilterView
}

export interface BulkPreview {
  readonly count: number
  /** False where counting stopped at its limit. */
  readonly isExact: boolean
  readonly sample: readonly JobSummary[]
  /** What the person must type for a destructive act, such as `purge 1203`; null where nothing needs to be typed. */
  readonly phrase: string | null
}

export interface BulkRunRequest extends BulkTarget {
  readonly note: string
  /** At most this many jobs in this call, 1 to 1,000: a small sample first, then the rest call by call. */
  readonly limit: number
  readonly phrase?: string
  readonly cursor?: string
}

export interface BulkAnswer {
  readonly doneCount: number
  readonly refused: readonly { readonly why: string; readonly count: number }[]
  /** Pass it back to go on; null at the end. */
  readonly nextCursor: string | null
}

export interface ReviewView {
  readonly id: string
  readonly revision: number
  readonly type: string
  readonly queue: string
  readonly key: string
  readonly reason: string
  readonly message: string
  readonly effect: string | null
  readonly item: string | null
  readonly intentAtMs: number | null
  readonly attempts: number
  readonly crashes: number
  /** Whether the worker that made the call is proven dead; null where no call is in doubt. */
  readonly ownerGone: boolean | null
}

export interface ReviewDetail {
  readonly review: ReviewView
  readonly detail: JobDetail
  /** Which of the four are possible now, with the reason where one is not, and what each would do, in one sentence. */
  readonly decisions: readonly {
    readonly decision: 'adopt' | 'retry' | 'abandon' | 'compensate'
    readonly allowed: boolean
    readonly explanation: string
  }[]
}

export interface ReviewActRequest {
  readonly revision: number
  readonly note: string
  /** adopt: JSON text of the result. */
  readonly result?: string
  readonly effect?: { readonly name: string; readonly item?: string }
}

export type ReviewAnswer =
  { readonly outcome: 'resolved' } | { readonly outcome: 'already-resolved'; readonly by: string; readonly as: string }
