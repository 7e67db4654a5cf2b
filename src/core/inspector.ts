/**
 * The operators' side of a storage: reads that stay cheap, and acts that are audited in the transaction that does them.
 * Nothing here is on the hot path.
 */
import type { CounterRow } from './counters.ts'
import type { IntentState, LedgerRecord } from './ledger.ts'
import type { ArchiveOutcome, DeadReason, HotState, JobKey, JobRecord, Pillar } from './job.ts'
import type { MetricQuery, MetricSeries } from './metrics.ts'
import type { JobTypeRow, WorkerInfo } from './registration.ts'

/** Who acts, and why. Both stand in the audit log. */
export interface Actor {
  readonly actor: string
  readonly note: string
}

export interface JobFilter {
  readonly type?: string
  readonly queue?: string
  readonly keyPrefix?: string
  readonly keyHash?: string
  readonly tag?: string
  readonly state?: HotState | ArchiveOutcome
  readonly reason?: DeadReason
  /** Dead jobs that wait for a person: in doubt, or a conflict. */
  readonly inReview?: true
  /** Skipped because of this job, or dead because their payload differed from its. */
  readonly duplicateOf?: string
  /** Created at or after. */
  readonly fromMs?: number
  /** Created before. */
  readonly beforeMs?: number
}

export interface JobPage {
  readonly jobs: readonly JobRecord[]
  /** Pass it back to go on; undefined at the end. */
  readonly nextCursor: string | undefined
}

export interface ListRequest {
  readonly pillar: Pillar
  readonly filter: JobFilter
  /** 1 to 500. Newest first. */
  readonly limit: number
  readonly cursor: string | undefined
}

export interface CountRequest {
  readonly pillar: Pillar
  readonly filter: JobFilter
  /** Counting stops here. */
  readonly limit: number
}

/** `isExact` is false where counting stopped: at the limit, or because too many rows had to be looked at. */
export interface BoundedCount {
  readonly count: number
  readonly isExact: boolean
}

export interface AuditRequest {
  readonly limit: number
  readonly beforeId: number | undefined
  /** Only acts on this job or queue; undefined for all. */
  readonly subject?: string | undefined
}

/** Dead jobs of a queue are counted up to here: looking at a queue must not read the whole DLQ. */
export const maxDeadCount = 10_000

export interface QueueRow {
  readonly name: string
  readonly paused: boolean
  /** Undefined: no global limit. */
  readonly maxConcurrency: number | undefined
  readonly scheduledCount: number
  readonly pendingCount: number
  readonly fetchedCount: number
  readonly processingCount: number
  /** Up to `maxDeadCount`. */
  readonly deadCount: number
  /** Age of the oldest due pending job, milliseconds; undefined where none waits. */
  readonly lagMs: number | undefined
}

export interface QueueChange {
  readonly name: string
  readonly paused?: boolean
  /** null lifts the limit. */
  readonly maxConcurrency?: number | null
  /** How long finished jobs of this queue are kept; null returns to the worker's default. */
  readonly archiveRetentionMs?: number | null
  /** How long dead jobs of this queue are kept; null returns to the worker's default. */
  readonly dlqRetentionMs?: number | null
}

export interface WorkerRow extends WorkerInfo {
  readonly beat: number
  readonly startedAtMs: number
  readonly beatAtMs: number
  readonly runningCount: number
  readonly bufferedCount: number
}

export interface AuditRow {
  readonly id: number
  readonly atMs: number
  readonly actor: string
  readonly note: string
  readonly act: string
  /** The job, queue or filter acted on. */
  readonly subject: string
  /** JSON text. */
  readonly detail: string
}

export type CancelVerdict =
  | { readonly kind: 'cancelled' }
  /** A worker owns it: its signal aborts with the next beat, and the worker settles. */
  | { readonly kind: 'requested' }
  | { readonly kind: 'finished'; readonly state: ArchiveOutcome | 'dead' }
  | { readonly kind: 'not-found' }

/** An operator's word that what is in doubt did not happen. */
export interface Absence {
  /** Where it was looked for, and what was found; stands in the audit log. */
  readonly statement: string
  /** How old a call must be before its absence is believed: the provider's reads may lag, and the call may be under way. */
  readonly settleAfterMs: number
}

export interface ResurrectRequest {
  readonly jobId: string
  /** `continue`: same generation and provider keys. `new-operation`: next generation, replaces the key's marker. */
  readonly mode: 'continue' | 'new-operation'
  /** An edited payload; undefined keeps the stored one. The worker validates it again. */
  readonly payload: string | undefined
  /** The key of the edited payload, with its fingerprint; undefined keeps the stored ones. */
  readonly key: { readonly key: JobKey; readonly fingerprint: string } | undefined
  /** Refuses where the row's revision is another by now; undefined accepts any. */
  readonly revision: number | undefined
  /** A new operation of a job in doubt needs it, unless the record proves the absence. */
  readonly absence: Absence | undefined
}

export type ResurrectVerdict =
  | { readonly kind: 'resurrected'; readonly generation: number }
  | { readonly kind: 'not-found' }
  | { readonly kind: 'changed'; readonly revision: number }
  /** The key is held by an active job. */
  | { readonly kind: 'active'; readonly jobId: string }
  /** A live marker of the key says so; only `new-operation` replaces it, and nothing that of another job in doubt. */
  | { readonly kind: 'marked'; readonly jobId: string; readonly state: MarkerState }
  /** `continue` of a job in doubt: only a review decision or `new-operation` may. */
  | { readonly kind: 'in-doubt' }
  /**
   * `new-operation` of a job in doubt, and nothing proves that its calls did not happen. `waitMs`: an absence was stated,
   * and can be believed only then.
   */
  | { readonly kind: 'not-absent'; readonly effects: readonly string[]; readonly waitMs: number | undefined }
  /** `continue` is no longer safe: a marker of the same operation could have come and gone. */
  | { readonly kind: 'too-old' }
  /** An edit that changes the key is a new operation. */
  | { readonly kind: 'key-changed' }

export const decisions = ['adopt', 'retry', 'abandon', 'compensate'] as const
/**
 * How a person ends a doubt. `adopt`: it happened, this is the result. `retry`: it did not happen. `abandon`: the
 * operation is given up. `compensate`: what happened is undone.
 */
export type Decision = (typeof decisions)[number]

export interface ResolveRequest {
  readonly jobId: string
  /** The revision the operator saw. */
  readonly revision: number
  readonly decision: Decision
  /** Which effect the result of `adopt` belongs to; undefined where only one is in doubt, or none. */
  readonly effect: { readonly name: string; readonly item: string } | undefined
  /** JSON text of what `adopt` adopts. */
  readonly result: string | null
  /** How long the marker of a finished decision stands. */
  readonly markerLifeMs: number
  /** A fresh id, for the row that records the decision. */
  readonly id: string
}

export type ResolveVerdict =
  | { readonly kind: 'resolved' }
  | { readonly kind: 'already-resolved'; readonly by: string; readonly as: string }
  | { readonly kind: 'changed'; readonly revision: number }
  /** Another job runs under the key. */
  | { readonly kind: 'active'; readonly jobId: string }
  | { readonly kind: 'not-found' }
  | { readonly kind: 'not-possible'; readonly problem: string }

export type MarkerState = 'completed' | 'in_doubt' | 'terminal' | 'compensated'

export interface MarkerRow {
  readonly keyHash: string
  readonly state: MarkerState
  readonly jobId: string
  readonly generation: number
  readonly fingerprint: string | null
  readonly result: string | null
  readonly expiresAtMs: number | undefined
}

/** How calls of one effect of a type ended, among the newest calls of all effects. */
export interface ObservedEffect {
  readonly type: string
  readonly effect: string
  readonly callCount: number
  /** Of these calls. */
  readonly outcomes: Readonly<Partial<Record<IntentState, number>>>
  /** Calls that took a provider key along. */
  readonly keyedCount: number
  /** Calls that are done beside another one of the same effect, under no common key: it happened twice. */
  readonly doubledCount: number
}

/** A numbered migration, as the database has it or as this version knows it. */
export interface MigrationName {
  readonly version: number
  readonly name: string
}

/** Where both lists are the same, the tables are those of this version. */
export interface SchemaState {
  readonly applied: readonly MigrationName[]
  readonly known: readonly MigrationName[]
}

/** A table whose dead rows are cleaned up beside its use. */
export interface TableUpkeep {
  readonly name: string
  /** Estimates of the database. */
  readonly liveCount: number
  readonly deadCount: number
  /** When it was last cleaned; undefined where it never was, or the database does not say. */
  readonly cleanedAtMs: number | undefined
  /** Whether the database cleans it without being asked. */
  readonly isCleaned: boolean
}

export interface FileUpkeep {
  readonly sizeBytes: number
  /** Of these bytes, how many are free for new rows. */
  readonly freeBytes: number
  /** The write-ahead log beside it. */
  readonly logBytes: number
}

/** What keeps a database fit, as far as it can tell. */
export interface Upkeep {
  /** Its clock. */
  readonly nowMs: number
  /** Empty where dead rows are no matter. */
  readonly tables: readonly TableUpkeep[]
  /** The age of the oldest transaction for whose sake dead rows are kept; undefined where there is none. */
  readonly oldestSnapshotMs: number | undefined
  /** Undefined where the data is in no file of its own. */
  readonly file: FileUpkeep | undefined
  /** Processes that commits of others wake at this moment; undefined where nobody listens by design, or nobody may know. */
  readonly listenerCount: number | undefined
}

/** A call in doubt, and the dead job that waits for it. */
export interface Doubt {
  readonly reviewId: string
  readonly effect: LedgerRecord
}

/** The newest calls of effects that a checklist looks at. */
export const maxObservedCalls = 2_000

export interface Inspector {
  get(jobId: string): Promise<JobRecord | undefined>
  list(request: ListRequest): Promise<JobPage>
  /** How many jobs a list has, as far as that is cheap. */
  count(request: CountRequest): Promise<BoundedCount>
  queues(): Promise<readonly QueueRow[]>
  workers(): Promise<readonly WorkerRow[]>
  jobTypes(): Promise<readonly JobTypeRow[]>
  audit(request: AuditRequest): Promise<readonly AuditRow[]>
  stats(): Promise<readonly CounterRow[]>
  /** What happened when, from buckets. Never scans history. */
  metrics(query: MetricQuery): Promise<MetricSeries>
  schema(): Promise<SchemaState>
  upkeep(): Promise<Upkeep>
  marker(keyHash: string): Promise<MarkerRow | undefined>

  /** The ledger rows of a job's key, oldest first; of the job itself where it has no key. At most 1,000. */
  effects(jobId: string): Promise<readonly LedgerRecord[]>
  /** The newest calls of effects, `limit` closed ones and as many in doubt, by type and effect. Never scans history. */
  observedEffects(limit: number): Promise<readonly ObservedEffect[]>
  /** What is in doubt of dead jobs, oldest call first: one question for a whole list of reviews. */
  doubts(jobIds: readonly string[]): Promise<readonly Doubt[]>
  /** Ends a doubt: takes the claim first, then acts, in one transaction. */
  resolve(request: ResolveRequest, by: Actor): Promise<ResolveVerdict>

  setQueue(change: QueueChange, by: Actor): Promise<void>
  cancel(jobId: string, by: Actor): Promise<CancelVerdict>
  /** A scheduled job becomes pending at once: true; false where it is not scheduled. */
  retryNow(jobId: string, by: Actor): Promise<boolean>
  /** Limits for `continue` come from the type's windows; `continueWithinMs` counts from the job's creation. */
  resurrect(request: ResurrectRequest, by: Actor, continueWithinMs: number | undefined): Promise<ResurrectVerdict>
  /** Deletes dead jobs for good, those in doubt excepted; returns how many. */
  purge(
    request: { readonly jobIds?: readonly string[]; readonly filter?: JobFilter; readonly limit: number },
    by: Actor,
  ): Promise<number>
}

/** What an inspector reads. The rest acts. */
export const inspectorReads = [
  'get',
  'list',
  'count',
  'queues',
  'workers',
  'jobTypes',
  'audit',
  'stats',
  'metrics',
  'schema',
  'marker',
  'effects',
  'doubts',
  'observedEffects',
] as const satisfies readonly (keyof Inspector)[]

export type InspectorReads = Pick<Inspector, (typeof inspectorReads)[number]>

/** Reads for people, beside the work: however slow one is, no worker and no enqueue of this process waits behind it. */
export interface InspectorReader {
  readonly reads: InspectorReads
  close(): Promise<void>
}

export interface ReaderOptions {
  /** How long the database may work on one read, milliseconds. */
  readonly deadlineMs: number
}
