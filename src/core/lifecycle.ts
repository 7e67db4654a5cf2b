/**
 * THE state machine. Every change of a job is one row of this table; the storage has one statement (or one transaction)
 * for it, the conformance suite one group of cases, docs/lifecycle.md is generated from it, and the model test checks
 * every step against `isTransition`.
 *
 * Invariants:
 * - A job is in exactly one pillar. Leaving hot, marker, children and counters are one transaction.
 * - Only `fetch`, `rescue`, `disown`, `resurrect` and operators raise the token. A settle never does, so an equal token
 *   on a row that waits again means "my own settle committed".
 * - `attempt` rises with every start and is given back only by the release of a fast start whose handler never ran.
 */
import type { CounterName } from './counters.ts'
import type { HotState } from './job.ts'

export const verbs = [
  'enqueue',
  'promote',
  'fetch',
  'claim',
  'start',
  'complete',
  'retry',
  'bury',
  'refuse',
  'skip',
  'defer',
  'cancel',
  'release',
  'rescue',
  'disown',
  'resurrect',
  'resolve',
  'purge',
] as const
export type Verb = (typeof verbs)[number]

export type Place = HotState | 'archive' | 'dlq' | 'nowhere'
export type Stage = 'enqueue' | 'fetch' | 'process' | 'settle' | 'sweep' | 'operator'

export interface Transition {
  readonly verb: Verb
  readonly from: readonly Place[]
  readonly to: readonly Place[]
  readonly stage: Stage
  /** Who may call it. */
  readonly who: string
  readonly precondition: string
  readonly does: string
  readonly counters: readonly CounterName[]
}

export const transitions: readonly Transition[] = [
  {
    verb: 'enqueue',
    from: ['nowhere'],
    to: ['scheduled', 'pending'],
    stage: 'enqueue',
    who: 'any producer',
    precondition: 'no hot row has the key, no live marker has it, and the id is new',
    does: 'inserts the row; scheduled where it is due later. Generation: the newest known of the key, else 1',
    counters: ['jobs.enqueued'],
  },
  {
    verb: 'promote',
    from: ['scheduled'],
    to: ['pending'],
    stage: 'sweep',
    who: 'any worker',
    precondition: 'run_at has come',
    does: 'nothing but the state',
    counters: [],
  },
  {
    verb: 'fetch',
    from: ['pending'],
    to: ['fetched', 'processing'],
    stage: 'fetch',
    who: 'a worker that registered the type',
    precondition: 'the queue is not paused and below its limit, counting fetched and processing rows of all workers',
    does: 'new token, owner, fetched_at. Fast start: processing, attempt + 1, started_at and policy in the same step where the type may (fastStart), the row has crashed never and is no suspect, its key stands or its type has none, it is within its lifetime and no live marker has its key',
    counters: ['idempotency.claims'],
  },
  {
    verb: 'claim',
    from: ['fetched'],
    to: ['fetched'],
    stage: 'fetch',
    who: 'the owner, for a keyed row that was enqueued without its key',
    precondition: 'lease; no other hot row has the key',
    does: 'writes the key. Committed before start looks at the marker',
    counters: [],
  },
  {
    verb: 'start',
    from: ['fetched'],
    to: ['processing'],
    stage: 'fetch',
    who: 'the owner',
    precondition:
      'lease; queue not paused; no cancel asked; within the retry lifetime; no live marker of another job on the key (its own in_doubt marker does not count)',
    does: 'attempt + 1, started_at, first_started_at once, the policy stamped on the row',
    counters: ['idempotency.claims'],
  },
  {
    verb: 'complete',
    from: ['processing'],
    to: ['archive', 'dlq'],
    stage: 'settle',
    who: 'the owner',
    precondition: 'lease',
    does: 'marker completed, children, archive. A live marker of another job parks it as CompleteConflict with all evidence',
    counters: ['jobs.completed', 'idempotency.claims', 'jobs.dlq'],
  },
  {
    verb: 'retry',
    from: ['processing', 'fetched'],
    to: ['scheduled', 'pending', 'archive', 'dlq'],
    stage: 'settle',
    who: 'the owner',
    precondition: 'lease',
    does: 'failures + 1 where it is charged; run_at moves. Where a cancel was asked for meanwhile it is cancelled instead',
    counters: ['jobs.failed', 'jobs.retried', 'jobs.cancelled', 'jobs.dlq', 'idempotency.claims'],
  },
  {
    verb: 'bury',
    from: ['processing', 'fetched'],
    to: ['dlq'],
    stage: 'settle',
    who: 'the owner',
    precondition: 'lease',
    does: 'into the DLQ with reason and history; with hold also a marker in_doubt without expiry',
    counters: ['jobs.failed', 'jobs.dlq', 'idempotency.claims'],
  },
  {
    verb: 'refuse',
    from: ['fetched', 'processing'],
    to: ['dlq'],
    stage: 'settle',
    who: 'the owner, before the handler ran',
    precondition: 'lease; the payload fails its schema, the key is empty, or the key is used for another payload',
    does: 'as bury, with reason Rejected, EmptyKey or KeyReused',
    counters: ['jobs.dlq', 'idempotency.claims'],
  },
  {
    verb: 'skip',
    from: ['fetched', 'processing'],
    to: ['archive'],
    stage: 'settle',
    who: 'the owner',
    precondition: 'lease; the key has a holder that stays accountable, with the same fingerprint',
    does: 'archived as skipped with duplicate_of and the stored result; never counted as success',
    counters: ['jobs.skipped', 'idempotency.claims'],
  },
  {
    verb: 'defer',
    from: ['fetched', 'processing'],
    to: ['scheduled'],
    stage: 'settle',
    who: 'the owner',
    precondition: 'lease; the key is held and the handler says onDuplicate: defer',
    does: 'waits and asks again; a key it computed is not kept',
    counters: ['jobs.deferred', 'idempotency.claims'],
  },
  {
    verb: 'cancel',
    from: ['scheduled', 'pending', 'fetched', 'processing'],
    to: ['archive', 'dlq'],
    stage: 'settle',
    who: 'an operator on a waiting row; on an owned one the operator only asks, and owner or rescue settle',
    precondition: 'waiting, or lease',
    does: 'archived as cancelled; a review handler that had started is buried in doubt',
    counters: ['jobs.cancelled', 'jobs.dlq', 'idempotency.claims'],
  },
  {
    verb: 'release',
    from: ['fetched', 'processing'],
    to: ['pending'],
    stage: 'settle',
    who: 'the owner, where the handler never ran',
    precondition: 'lease',
    does: 'clears the lease fields; a fast start gets its attempt back; costs nothing',
    counters: [],
  },
  {
    verb: 'rescue',
    from: ['fetched', 'processing'],
    to: ['pending', 'dlq', 'archive'],
    stage: 'sweep',
    who: 'any worker but the owner',
    precondition: 'the owner is dead or has no worker row',
    does: 'new token. Never started: fetch_crashes + 1, over 10 buried. Fast start: suspect, no charge. Gated start: crashes + 1 and suspect, over the budget buried as Interrupted; under review buried in doubt. Cancel asked for: cancelled instead',
    counters: ['jobs.rescued', 'jobs.dlq', 'jobs.cancelled', 'idempotency.claims'],
  },
  {
    verb: 'disown',
    from: ['fetched', 'processing'],
    to: ['pending'],
    stage: 'process',
    who: 'the owner, for rows it owns but does not know',
    precondition: 'owner, lease not in hand, fetched more than twice the statement deadline before its last beat',
    does: 'new token, as release; the reply of the fetch was lost, so nothing is charged',
    counters: [],
  },
  {
    verb: 'resurrect',
    from: ['dlq'],
    to: ['pending'],
    stage: 'operator',
    who: 'an operator',
    precondition: 'no active holder of the key; continue: no marker, not in doubt, young enough',
    does: 'new token; failures, crashes, suspect and lifetime start anew; attempt stays. A new operation takes the next generation and replaces the marker; audited',
    counters: ['jobs.resurrected'],
  },
  {
    verb: 'resolve',
    from: ['dlq'],
    to: ['archive', 'pending'],
    stage: 'operator',
    who: 'an operator who decides a review',
    precondition: 'in doubt, and the revision the operator saw',
    does: 'ends the doubt; audited',
    counters: [],
  },
  {
    verb: 'purge',
    from: ['dlq', 'archive'],
    to: ['nowhere'],
    stage: 'sweep',
    who: 'retention, or an operator for dead jobs',
    precondition: 'past its retention, or asked for; never a row in doubt',
    does: 'deletes the row',
    counters: ['jobs.pruned', 'jobs.purged'],
  },
]

/** Whether the table allows a step. */
export function isTransition(verb: Verb, from: Place, to: Place): boolean {
  return transitions.some((t) => t.verb === verb && t.from.includes(from) && t.to.includes(to))
}
