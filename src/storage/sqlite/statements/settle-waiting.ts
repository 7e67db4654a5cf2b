/** Endings after which the job waits again, in hot. The token stays: only a new owner raises it. */
import type { CounterSum } from '../../../core/counters.ts'
import { serializeFailure } from '../../../core/failure.ts'
import type { SettleAction, SettleOutcome } from '../../../core/storage.ts'
import type { Transaction } from '../write-transaction.ts'
import { historyWith, type HotRow, isInterruptedReview } from './leave-hot.ts'
import { findLiveMarker } from './markers.ts'
import { cancel } from './settle-leaving.ts'

type Retry = Extract<SettleAction, { readonly kind: 'retry' }>
type Defer = Extract<SettleAction, { readonly kind: 'defer' }>

const writeFailure = `UPDATE chokaq_jobs_hot SET failure_count = failure_count + ?, failure = coalesce(?, failure),
  history = coalesce(?, history) WHERE rowid = ?`
const writeRetry = `UPDATE chokaq_jobs_hot SET state = ?, run_at = ?, worker_id = NULL, fetched_at = NULL, fast_started = 0
  WHERE rowid = ?`

/**
 * retry: fetched | processing -> scheduled (with a delay) | pending; where a cancel was asked for meanwhile -> archive as
 * cancelled, or dlq in doubt where a review handler had started
 * Precondition: lease.
 * Returns retried, cancelled or dead.
 * Who: the owner.
 */
export function retry(tx: Transaction, row: HotRow, action: Retry, counters: CounterSum): SettleOutcome {
  const { failure, charge, reason, delayMs } = action
  const { session, nowMs } = tx
  if (charge === 'failure') counters.add('jobs.failed', row, reason)
  if (charge === 'failure' || failure !== null) {
    const text = failure === null ? null : serializeFailure(failure)
    const history = historyWith(session, row, failure, reason, nowMs)
    session.run(writeFailure, charge === 'failure' ? 1 : 0, text, history, row.rowid)
  }
  if (row.cancel_requested_at !== null) return cancel(tx, row, isInterruptedReview(row), null, counters)
  const runAtMs = Math.ceil(nowMs + Math.max(0, delayMs))
  const isReady = runAtMs <= nowMs
  session.run(writeRetry, isReady ? 'pending' : 'scheduled', runAtMs, row.rowid)
  if (isReady) tx.jobsBecameReady = true
  counters.add('jobs.retried', row, reason)
  return 'retried'
}

const writeDefer = `UPDATE chokaq_jobs_hot SET state = 'scheduled', run_at = ?, worker_id = NULL, fetched_at = NULL,
  attempt = attempt - fast_started, fast_started = 0 WHERE rowid = ?`
const forgetKey = `UPDATE chokaq_jobs_hot SET key_hash = NULL, key_prefix = NULL, key_scope = NULL, fingerprint = NULL,
  key_computed = 0 WHERE rowid = ?`

/**
 * defer: fetched | processing -> scheduled; a key the worker computed is not kept
 * Precondition: lease; the key is held and the handler says onDuplicate: defer.
 * Returns deferred.
 * Who: the owner.
 */
export function defer(tx: Transaction, row: HotRow, { delayMs }: Defer, counters: CounterSum): SettleOutcome {
  const { session, nowMs } = tx
  const marker = row.key_hash === null ? undefined : findLiveMarker(session, row.key_hash, nowMs)
  const isDone = marker !== undefined && marker.state !== 'in_doubt'
  session.run(writeDefer, Math.ceil(nowMs + Math.max(0, delayMs)), row.rowid)
  if (row.key_computed === 1) session.run(forgetKey, row.rowid)
  counters.add('jobs.deferred', row)
  counters.add('idempotency.claims', row, isDone ? 'completed_duplicate' : 'in_progress_duplicate')
  return 'deferred'
}

/** A fast start whose handler never ran is undone: attempt, times and, where this was the first start, its lifetime. */
export const giveBack = `state = 'pending', worker_id = NULL, fetched_at = NULL, attempt = attempt - fast_started,
  first_started_at = CASE WHEN fast_started = 1 AND first_started_at = started_at THEN NULL ELSE first_started_at END,
  started_at = CASE WHEN fast_started = 1 THEN NULL ELSE started_at END, fast_started = 0`
const writeRelease = `UPDATE chokaq_jobs_hot SET ${giveBack} WHERE rowid = ?`

/**
 * release: fetched | processing -> pending, at its old place in the queue
 * Precondition: lease; the handler never ran. Costs nothing; a fast start gets its attempt back.
 * Returns released.
 * Who: the owner.
 */
export function release(tx: Transaction, row: HotRow): SettleOutcome {
  tx.session.run(writeRelease, row.rowid)
  tx.jobsBecameReady = true
  return 'released'
}
