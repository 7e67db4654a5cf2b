/**
 * The port between the engine and a database. The methods are grouped by the stage that calls them, batches go in and
 * verdicts come out in the same order, one per row. Rules that every implementation keeps and the conformance suite
 * holds:
 *
 * - Every method that changes an owned row takes leases; the guard (id, token, state) is in the SQL.
 * - One transition is one transaction: job, marker, children and counters commit together or not at all.
 * - A row of a batch that the database refuses gets its own verdict; it never costs its neighbours theirs.
 * - The database's clock decides what is due, expired and over: no method takes the time.
 * - A lost reply may be repeated: start, settle and an enqueue with `mayExist` recognise what they did before.
 * - Rejections are ChokaQErrors; isTransient() tells whether the same call may be repeated.
 */
import type { CounterRow } from './counters.ts'
import type { StoredFailure } from './failure.ts'
import type { DeadReason, FetchedJob, HotState, JobKey, NewJob } from './job.ts'
import type { Lease } from './lease.ts'
import type { LedgerRef, LedgerRequest, LedgerVerdict } from './ledger.ts'
import type { Inspector, InspectorReader, ReaderOptions } from './inspector.ts'
import type { JobTypeRow, WorkerInfo } from './registration.ts'
import type { ProcessIdentity, Runtime } from './runtime.ts'

export type { JobTypeRow, WorkerInfo } from './registration.ts'

export interface StorageCapabilities {
  /** Other processes' commits wake this one without polling. */
  readonly supportsListen: boolean
  /** Workers on several machines may share it. */
  readonly sharedByMachines: boolean
  /** enqueueSync and completeSync work inside the caller's synchronous transaction. */
  readonly supportsSyncTransactions: boolean
  /** enqueueIn works inside the caller's asynchronous transaction. */
  readonly supportsAsyncTransactions: boolean
}

/** Whether other processes' commits wake this one at the moment, and why not. */
export type Hearing = { readonly hears: true } | { readonly hears: false; readonly error: unknown }

/** What `sqlite(path)` gives: a description that costs nothing until it is opened. */
export interface Storage {
  readonly capabilities: StorageCapabilities
  /** Where it is, without credentials: for messages and logs. */
  readonly location: string
  open(runtime: Runtime): StorageDriver
}

/** What a worker knows of a type, as far as fetch, start and settle need it. */
export interface TypePolicy {
  readonly type: string
  readonly keyed: boolean
  /** The fetch itself may start it: its handler may simply run again. */
  readonly fastStart: boolean
  readonly whenInterrupted: 'resume' | 'review'
  readonly crashBudget: number
  readonly fetchCrashBudget: number
  readonly retryLifetimeMs: number
  readonly timeoutMs: number
  readonly markerLifeMs: number
}

// ---- enqueue

export type EnqueueVerdict =
  | { readonly kind: 'inserted' }
  /** The same job (id, type, key, payload) is stored already: the answer to a lost reply. */
  | { readonly kind: 'resent' }
  | { readonly kind: 'id-reused' }
  | { readonly kind: 'active'; readonly jobId: string; readonly state: HotState }
  | { readonly kind: 'completed'; readonly jobId: string; readonly result: string | null }
  | { readonly kind: 'in-review'; readonly jobId: string }
  | { readonly kind: 'failed'; readonly jobId: string; readonly failure: StoredFailure }
  | { readonly kind: 'compensated'; readonly jobId: string }
  /** The key's holder has another fingerprint. `holderPayload` is null where it is no longer kept. */
  | { readonly kind: 'key-reused'; readonly jobId: string; readonly holderPayload: string | null }
  /** The database refused this row alone. */
  | { readonly kind: 'refused'; readonly error: Error }

// ---- fetch, claim, start

export interface FetchRequest {
  readonly workerId: string
  readonly queue: string
  readonly limit: number
  /** The types this worker runs. The same array object is passed again and again, so it can be cached by identity. */
  readonly policies: readonly TypePolicy[]
}

export interface BusyQueuesRequest {
  readonly queues: readonly string[]
  readonly types: readonly string[]
}

export interface ClaimRequest {
  readonly lease: Lease
  readonly key: JobKey
  readonly fingerprint: string
}

export type ClaimVerdict =
  | { readonly kind: 'claimed' }
  /** Another hot job has the key. The row keeps no key. */
  | { readonly kind: 'held'; readonly jobId: string; readonly sameFingerprint: boolean }
  | { readonly kind: 'lost' }

export interface StartRequest {
  readonly lease: Lease
  readonly policy: TypePolicy
}

/** What holds the key of a job that must not run. */
export type HolderState = 'completed' | 'in-progress' | 'in-review' | 'failed' | 'compensated'

export type StartVerdict =
  | {
      readonly kind: 'started'
      readonly attempt: number
      readonly startedAtMs: number
      readonly firstStartedAtMs: number
    }
  | {
      readonly kind: 'duplicate'
      readonly jobId: string
      readonly holder: HolderState
      readonly result: string | null
      readonly sameFingerprint: boolean
    }
  | { readonly kind: 'paused' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'expired' }
  | { readonly kind: 'lost' }

// ---- settle

/** What stays of a completed job: `full`, or a stub (id, token, outcome) for `resendForMs`. */
export type Keep = { readonly kind: 'full' } | { readonly kind: 'stub'; readonly forMs: number }

export type SettleAction =
  | {
      readonly kind: 'complete'
      readonly result: string | null
      /** How long the marker stands; ignored for a job without a key. */
      readonly markerLifeMs: number
      readonly keep: Keep
      /** The handler has effects: refuse to complete while one is in doubt (the job is then buried InDoubt). */
      readonly guard?: true
      /** Its effects were undone: the marker says `compensated`, so that a late duplicate never acts again. */
      readonly compensated?: true
      /**
       * Jobs the handler enqueued: they commit with the completion. A child whose key is held is left out, counted; one
       * whose key is held for another payload, or whose derived id is, is kept in the DLQ as KeyReused and told of.
       */
      readonly children: readonly NewJob[]
    }
  | {
      readonly kind: 'retry'
      readonly delayMs: number
      readonly failure: StoredFailure | null
      /** `failure` is compared with the retry budget; `nothing` is free (RetryAfter, shutdown). */
      readonly charge: 'failure' | 'nothing'
      readonly reason: RetryReason
    }
  | {
      readonly kind: 'bury'
      readonly reason: DeadReason
      readonly failure: StoredFailure | null
      readonly hold: boolean
      /** The outcome is final and known: a marker `terminal` stands this long, and duplicates get `already-failed`. */
      readonly terminalForMs?: number
    }
  | {
      readonly kind: 'skip'
      readonly duplicateOf: string
      readonly holder: HolderState
      readonly result: string | null
    }
  | { readonly kind: 'defer'; readonly delayMs: number }
  /** `hold` leaves a marker in doubt and buries instead of archiving: a review handler had started. */
  | { readonly kind: 'cancel'; readonly hold: boolean }
  /** Back to pending at no cost: the handler never ran. Undoes the attempt of a fast start. */
  | { readonly kind: 'release' }

export type RetryReason = 'failed' | 'timeout' | 'retry-after' | 'not-executed' | 'shutdown' | 'storage'

export interface Settlement {
  readonly lease: Lease
  readonly action: SettleAction
}

/** A completion inside the caller's own synchronous transaction. */
export interface SyncSettlement extends Settlement {
  /** Outcomes of effects that are on their way to the ledger: recorded first, because the guard asks for them. */
  readonly outcomes?: readonly Extract<LedgerRequest, { readonly kind: 'close' }>[]
}

export type SettleOutcome =
  'completed' | 'conflict' | 'retried' | 'dead' | 'skipped' | 'deferred' | 'cancelled' | 'released'

export interface DeadChild {
  readonly jobId: string
  readonly type: string
  readonly queue: string
  readonly failure: StoredFailure
}

export type SettleVerdict =
  /** `repeated` where this settle, or an earlier one whose reply was lost, had done it before. */
  | {
      readonly kind: 'settled'
      readonly outcome: SettleOutcome
      readonly repeated: boolean
      /** Children of a completed job that are kept in the DLQ as KeyReused; absent where there are none. */
      readonly deadChildren?: readonly DeadChild[]
    }
  | { readonly kind: 'lost' }
  /** The database refuses this row's content; nothing changed. */
  | { readonly kind: 'refused'; readonly error: Error }

// ---- transactions of a handler

/** A transaction that leaves a checkpoint, guarded by the lease. */
export interface CheckpointRequest {
  readonly lease: Lease
  readonly ref: LedgerRef
  /** A fresh id: the checkpoint row's own. */
  readonly id: string
  readonly workerId: string
  readonly attempt: number
  readonly keepMs: number
  /** Aborts when the attempt is over: what is still open then is rolled back, and the storage waits no longer for the work. */
  readonly over?: AbortSignal
}

export type CheckpointVerdict =
  /** `work` ran and is committed. */
  | { readonly kind: 'ran'; readonly result: string | null }
  /** An earlier attempt had committed it; `work` did not run. */
  | { readonly kind: 'replayed'; readonly result: string | null }
  /** Rolled back, or never begun. */
  | { readonly kind: 'lost' }

// ---- liveness and sweep

export interface BeatRequest {
  readonly workerId: string
  readonly concurrency: number
  readonly runningCount: number
  readonly bufferedCount: number
}

export type BeatVerdict =
  | {
      readonly kind: 'alive'
      readonly cancelRequested: readonly string[]
      /** Whether any row in hot is the worker's: without one there is nothing to disown. */
      readonly ownsJobs: boolean
      /** The database's clock when it was executed. */
      readonly atMs: number
    }
  /** Its row is gone: it was declared dead. It must stop all it runs and register anew. */
  | { readonly kind: 'unknown' }

/** One worker as an observer sees it. `beat` is a counter: dead is what stands still. */
export interface WorkerBeat {
  readonly workerId: string
  readonly beat: number
  readonly identity: ProcessIdentity
}

export interface RescueRequest {
  readonly deadWorkerIds: readonly string[]
  /** Those of them whose process is certainly gone: no late call of theirs can still arrive. */
  readonly provenDeadIds?: readonly string[]
  readonly limit: number
}

export interface RescuedJob {
  readonly jobId: string
  readonly type: string
  readonly queue: string
  readonly workerId: string
  /** Where it went: back to pending, into the DLQ, or archived because its cancel was asked for. */
  readonly went: 'pending' | 'dead' | 'cancelled'
  readonly crashed: boolean
}

export interface PruneLimits {
  readonly limit: number
  readonly archiveRetentionMs: number
  readonly dlqRetentionMs: number
}

export interface PruneCounts {
  readonly archivedCount: number
  readonly deadCount: number
  readonly markerCount: number
  readonly effectCount: number
}

export interface Promotion {
  readonly promotedCount: number
  /** Milliseconds until the next scheduled job is due; undefined where none waits. */
  readonly nextDueInMs: number | undefined
}

/** A dead row that never was hot: a conflict the receiver must keep for a person. */
export interface DeadOnArrival {
  readonly job: NewJob
  readonly reason: DeadReason
  readonly failure: StoredFailure
  readonly duplicateOf: string | undefined
}

export interface StorageDriver {
  readonly capabilities: StorageCapabilities
  readonly inspector: Inspector
  /** A way to read of its own. Left out where there is none; costs nothing until its first read. */
  openReader?(options: ReaderOptions): InspectorReader

  /** Connects and migrates, once; every other method does it by itself where it was not called. */
  ready(): Promise<void>
  close(): Promise<void>
  /**
   * Calls `listener` soon after jobs may have become ready, here or (as a hint) in another process. `onHearing` is told when
   * other processes cannot be heard any more, and when they can again; never where the storage does not listen at all.
   */
  onWake(listener: () => void, onHearing?: (hearing: Hearing) => void): () => void

  // enqueue
  enqueue(jobs: readonly NewJob[]): Promise<readonly EnqueueVerdict[]>
  /** In the caller's own synchronous transaction. */
  enqueueSync(tx: unknown, jobs: readonly NewJob[]): readonly EnqueueVerdict[]
  /** In the caller's own asynchronous transaction. */
  enqueueIn(tx: unknown, jobs: readonly NewJob[]): Promise<readonly EnqueueVerdict[]>
  /** One row per (key hash, fingerprint): true where it was inserted, false where it stood already. */
  buryOnArrival(dead: DeadOnArrival): Promise<boolean>

  // fetch
  fetch(request: FetchRequest): Promise<readonly FetchedJob[]>
  /** Those of the queues in which a job of one of the types is pending: one question of an idle worker to all of them. */
  busyQueues(request: BusyQueuesRequest): Promise<readonly string[]>
  claim(requests: readonly ClaimRequest[]): Promise<readonly ClaimVerdict[]>
  start(requests: readonly StartRequest[]): Promise<readonly StartVerdict[]>

  // settle
  settle(settlements: readonly Settlement[]): Promise<readonly SettleVerdict[]>
  /** Completes inside the caller's own synchronous transaction. */
  completeSync(tx: unknown, settlement: SyncSettlement): SettleVerdict
  /** Completes inside the caller's own asynchronous transaction. */
  completeIn(tx: unknown, settlement: SyncSettlement): Promise<SettleVerdict>

  // process: liveness of this worker
  registerWorker(info: WorkerInfo): Promise<void>
  heartbeat(request: BeatRequest): Promise<BeatVerdict>
  /**
   * Gives back rows this worker owns but does not know: fetched before `fetchedBeforeMs`, lease not in `inHand`. The time
   * is the database's own and comes from a heartbeat, so that a call that is executed late takes back no row that was
   * fetched after `inHand` was read.
   */
  disown(request: {
    readonly workerId: string
    readonly inHand: readonly Lease[]
    readonly fetchedBeforeMs: number
  }): Promise<number>
  retireWorker(workerId: string): Promise<void>
  saveJobTypes(rows: readonly JobTypeRow[]): Promise<void>

  /**
   * Intents, outcomes and memos, with the verdicts of one after the other; those that are not refused share a
   * transaction where they can. `lost` where a request needs the lease and it is gone; a `close` needs none.
   */
  ledger(requests: readonly LedgerRequest[]): Promise<readonly LedgerVerdict[]>

  /**
   * Runs `work` in a transaction of this storage, with a checkpoint row that keeps its result (JSON text). What `work`
   * throws rolls back and is thrown on unchanged.
   */
  transaction(request: CheckpointRequest, work: (tx: unknown) => Promise<string | null>): Promise<CheckpointVerdict>
  transactionSync(request: CheckpointRequest, work: (tx: unknown) => string | null): CheckpointVerdict

  // sweep
  readBeats(): Promise<readonly WorkerBeat[]>
  /**
   * Takes back up to `limit` rows whose owner is in `deadWorkerIds` or has no worker row; removes the dead workers'
   * rows once nothing of theirs is left.
   */
  rescue(request: RescueRequest): Promise<readonly RescuedJob[]>
  promote(request: { readonly limit: number }): Promise<Promotion>
  prune(limits: PruneLimits): Promise<PruneCounts>
  /** The engine's own counters that belong to no transition of a job (empty keys refused at enqueue, for one). */
  count(rows: readonly CounterRow[]): Promise<void>
}
