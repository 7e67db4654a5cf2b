/** What any worker does for all: take back the rows of dead workers, promote what is due, forget what is old. */
import { CounterSum } from '../../../core/counters.ts'
import { ChokaQError } from '../../../core/errors.ts'
import { describeFailure, serializeFailure, type StoredFailure } from '../../../core/failure.ts'
import type { ProcessIdentity } from '../../../core/runtime.ts'
import type { Promotion, RescuedJob, RescueRequest, WorkerBeat } from '../../../core/storage.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../write-transaction.ts'
import { historyWith, type HotRow, hotRowColumns, isInterruptedReview, moveToDlq, plainBurial } from './leave-hot.ts'
import { proveOwnerGone } from './ledger.ts'
import { cancel } from './settle-leaving.ts'

/** Where a row was fetched by a version that stamped no budget. */
const defaultFetchCrashBudget = 10

/** readBeats: every worker's counter. Who: any worker; what stands still on its own clock is dead. */
export function readBeats(session: Session): readonly WorkerBeat[] {
  return session
    .all<{ readonly id: string; readonly beat: number; readonly identity: string }>(
      'SELECT id, beat, identity FROM chokaq_workers ORDER BY id',
    )
    .map(({ id, beat, identity }) => ({ workerId: id, beat, identity: JSON.parse(identity) as ProcessIdentity }))
}

// The two indexed reads: rows of the workers that are named, and rows whose worker has no row at all. Both predicates
// hold as long as the row is not taken back, so a sweep that died in the middle is simply repeated.
const selectLost = `SELECT ${hotRowColumns} FROM chokaq_jobs_hot INDEXED BY chokaq_jobs_hot_owned
  WHERE worker_id IS NOT NULL
    AND (worker_id IN (SELECT value FROM json_each(?)) OR worker_id NOT IN (SELECT id FROM chokaq_workers))
  ORDER BY id LIMIT ?`
const deleteIdleWorker = `DELETE FROM chokaq_workers WHERE id = ?
  AND NOT EXISTS (SELECT 1 FROM chokaq_jobs_hot WHERE worker_id = chokaq_workers.id)`

/** Whether a rescue would find something to do: looked up without a transaction. */
export function hasLost(session: Session, deadWorkerIds: readonly string[]): boolean {
  return deadWorkerIds.length > 0 || session.get(selectLost, '[]', 1) !== undefined
}

/**
 * rescue: fetched | processing -> pending, with a new token; -> dlq as Interrupted over a budget or under review;
 * -> archive where a cancel was asked for
 * Precondition: the owner is dead or has no worker row.
 * Returns what happened to each row. A row that the database refuses to change stays where it is and stops no other.
 * Who: any worker but the owner.
 */
export function rescue(tx: Transaction, { deadWorkerIds, provenDeadIds, limit }: RescueRequest): readonly RescuedJob[] {
  const { session } = tx
  const counters = new CounterSum()
  for (const workerId of provenDeadIds ?? []) proveOwnerGone(session, workerId)
  const rows = session.all<HotRow>(selectLost, JSON.stringify(deadWorkerIds), limit)
  const rescued = rows.map((row) =>
    tx.row<RescuedJob | undefined>(
      counters,
      (counted) => rescueOne(tx, row, counted),
      () => undefined,
    ),
  )
  for (const workerId of deadWorkerIds) session.run(deleteIdleWorker, workerId)
  tx.addCounters(counters)
  return rescued.filter((job) => job !== undefined)
}

function rescueOne(tx: Transaction, row: HotRow, counters: CounterSum): RescuedJob {
  const went = takeBack(tx, row, counters)
  counters.add('jobs.rescued', row, went)
  const { id: jobId, type, queue, worker_id: workerId } = row
  return { jobId, type, queue, workerId: workerId ?? '', went, crashed: row.state === 'processing' }
}

function takeBack(tx: Transaction, row: HotRow, counters: CounterSum): RescuedJob['went'] {
  const isRunning = row.state === 'processing'
  const hold = isInterruptedReview(row)
  // A fast start does not prove that the handler ran, so its crash makes suspect and charges nothing.
  const addCrashes = isRunning && row.fast_started === 0 ? 1 : 0
  const addFetchCrashes = isRunning ? 0 : 1
  const failure = isRunning ? interrupted(row, row.crash_count + addCrashes) : null
  if (row.cancel_requested_at !== null) {
    return cancel(tx, row, hold, failure, counters) === 'dead' ? 'dead' : 'cancelled'
  }
  const isOver =
    row.crash_count + addCrashes > (row.crash_budget ?? Infinity) ||
    row.fetch_crash_count + addFetchCrashes > (row.fetch_crash_budget ?? defaultFetchCrashBudget)
  if (hold || isOver) {
    const charges = { addCrashes, addFetchCrashes, hold }
    const evidence = failure ?? interrupted(row, row.crash_count)
    moveToDlq(
      tx,
      row,
      { ...plainBurial, ...charges, reason: 'Interrupted', failure: evidence, kind: 'crash' },
      counters,
    )
    return 'dead'
  }
  backToPending(tx, row, failure, addCrashes, addFetchCrashes)
  return 'pending'
}

const writeRescue = `UPDATE chokaq_jobs_hot SET state = 'pending', worker_id = NULL, fetched_at = NULL, fast_started = 0,
  token = ?, suspect = max(suspect, ?), crash_count = crash_count + ?, fetch_crash_count = fetch_crash_count + ?,
  failure = coalesce(?, failure), history = coalesce(?, history) WHERE rowid = ?`

function backToPending(
  tx: Transaction,
  row: HotRow,
  failure: StoredFailure | null,
  addCrashes: number,
  addFetchCrashes: number,
): void {
  tx.session.run(
    writeRescue,
    tx.session.reserveTokens(1),
    row.state === 'processing' ? 1 : 0,
    addCrashes,
    addFetchCrashes,
    failure === null ? null : serializeFailure(failure),
    historyWith(tx.session, row, failure, 'crash', tx.nowMs),
    row.rowid,
  )
  tx.jobsBecameReady = true
}

/** Without a stack: it would show this line and nothing of the job. */
function interrupted(row: HotRow, crashCount: number): StoredFailure {
  const { stack: _stack, ...failure } = describeFailure(
    new ChokaQError('CHOKAQ_INTERRUPTED', { jobId: row.id, crashCount }),
  )
  return failure
}

const selectNextDue = `SELECT min(run_at) AS run_at FROM chokaq_jobs_hot INDEXED BY chokaq_jobs_hot_scheduled
  WHERE state = 'scheduled'`
const promoteDue = `UPDATE chokaq_jobs_hot SET state = 'pending' WHERE rowid IN (SELECT rowid FROM chokaq_jobs_hot
  INDEXED BY chokaq_jobs_hot_scheduled WHERE state = 'scheduled' AND run_at <= ? ORDER BY run_at LIMIT ?)`

/** When the next scheduled job is due; undefined where none waits. */
export function nextDueAtMs(session: Session): number | undefined {
  return session.get<{ readonly run_at: number | null }>(selectNextDue)?.run_at ?? undefined
}

/**
 * promote: scheduled -> pending
 * Precondition: run_at has come.
 * Returns how many, and how long until the next is due.
 * Who: any worker.
 */
export function promote(tx: Transaction, { limit }: { readonly limit: number }): Promotion {
  const promotedCount = tx.session.run(promoteDue, tx.nowMs, limit)
  if (promotedCount > 0) tx.jobsBecameReady = true
  const next = nextDueAtMs(tx.session)
  return { promotedCount, nextDueInMs: next === undefined ? undefined : Math.max(0, next - tx.nowMs) }
}
