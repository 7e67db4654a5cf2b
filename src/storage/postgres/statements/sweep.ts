/** What any worker does for all: take back the rows of dead workers and promote what is due. */
import { ChokaQError } from '../../../core/errors.ts'
import { describeFailure, type StoredFailure } from '../../../core/failure.ts'
import type { ProcessIdentity } from '../../../core/runtime.ts'
import type { Promotion, RescuedJob, RescueRequest, WorkerBeat } from '../../../core/storage.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../transactions.ts'
import { Endings, type HotRow, hotRowColumns, isInterruptedReview, lockRows } from './leave-hot.ts'
import { proveOwnersGone } from './ledger-holds.ts'

/** Where a row was fetched by a version that stamped no budget. */
const defaultFetchCrashBudget = 10

interface BeatRow {
  readonly id: string
  readonly beat: number
  readonly identity: string
}

/** readBeats: every worker's counter. Who: any worker; what stands still on its own clock is dead. */
export async function readBeats(session: Session): Promise<readonly WorkerBeat[]> {
  const rows = await session.all<BeatRow>('SELECT id, beat, identity FROM chokaq.workers ORDER BY id')
  return rows.map(({ id, beat, identity }) => ({
    workerId: id,
    beat,
    identity: JSON.parse(identity) as ProcessIdentity,
  }))
}

// Both predicates hold as long as the row is not taken back, so a sweep that died in the middle is simply repeated.
const lostRows = `h.worker_id IS NOT NULL AND (h.worker_id = ANY($1::text[])
  OR NOT EXISTS (SELECT FROM chokaq.workers w WHERE w.id = h.worker_id))`
const anyLost = `SELECT 1 AS found FROM chokaq.jobs_hot h WHERE ${lostRows} LIMIT 1`
// Found through the index of owned rows, whatever the order asks for; then locked in the order of their ids.
const lockLost = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now),
  lost AS MATERIALIZED (SELECT h.id FROM chokaq.jobs_hot h WHERE ${lostRows})
  SELECT ${hotRowColumns} FROM chokaq.jobs_hot h CROSS JOIN c
  WHERE h.id = ANY(ARRAY(SELECT l.id FROM lost l ORDER BY l.id LIMIT $2)) AND ${lostRows}
  ORDER BY h.id FOR UPDATE OF h SKIP LOCKED`
const deleteIdleWorkers = `DELETE FROM chokaq.workers w WHERE w.id IN (
    SELECT o.id FROM chokaq.workers o WHERE o.id = ANY($1::text[]) ORDER BY o.id FOR UPDATE SKIP LOCKED)
  AND NOT EXISTS (SELECT FROM chokaq.jobs_hot h WHERE h.worker_id = w.id)`

/** Whether a rescue would find something to do where nobody is known to be dead: looked up without locks. */
export async function hasLost(session: Session): Promise<boolean> {
  return (await session.get(anyLost, [])) !== undefined
}

/**
 * rescue: fetched | processing -> pending, with a new token; -> dlq as Interrupted over a budget or under review;
 * -> archive where a cancel was asked for
 * Precondition: the owner is dead or has no worker row. Rows that somebody else holds at this moment are left to him.
 * Returns what happened to each row.
 * Who: any worker but the owner.
 */
export async function rescue(
  tx: Transaction,
  { deadWorkerIds, provenDeadIds, limit }: RescueRequest,
): Promise<readonly RescuedJob[]> {
  const { session } = tx
  await proveOwnersGone(session, provenDeadIds ?? [])
  const rows = await lockRows(session, lockLost, deadWorkerIds, limit)
  const endings = new Endings()
  const rescued = rows.map((row) => rescueOne(endings, row))
  await endings.write(tx)
  if (deadWorkerIds.length > 0) await session.all(deleteIdleWorkers, deadWorkerIds)
  return rescued
}

function rescueOne(endings: Endings, row: HotRow): RescuedJob {
  const went = takeBack(endings, row)
  endings.counters.add('jobs.rescued', row, went)
  const { id: jobId, type, queue, worker_id: workerId } = row
  return { jobId, type, queue, workerId: workerId ?? '', went, crashed: row.state === 'processing' }
}

function takeBack(endings: Endings, row: HotRow): RescuedJob['went'] {
  const isRunning = row.state === 'processing'
  const hold = isInterruptedReview(row)
  // A fast start does not prove that the handler ran, so its crash makes suspect and charges nothing.
  const addCrashes = isRunning && row.fast_started === 0 ? 1 : 0
  const addFetchCrashes = isRunning ? 0 : 1
  const crash_count = row.crash_count + addCrashes
  const fetch_crash_count = row.fetch_crash_count + addFetchCrashes
  const failure = isRunning ? interrupted(row, crash_count) : null
  if (row.cancel_requested_at !== null) {
    const isDoubtful = hold || row.holdsKey
    if (!isDoubtful) endings.cancelled(row)
    else endings.bury(row, { reason: 'InDoubt', failure, kind: 'cancelled', hold: true })
    return isDoubtful ? 'dead' : 'cancelled'
  }
  const isOver =
    crash_count > (row.crash_budget ?? Infinity) ||
    fetch_crash_count > (row.fetch_crash_budget ?? defaultFetchCrashBudget)
  if (hold || isOver) {
    const evidence = failure ?? interrupted(row, row.crash_count)
    endings.bury(row, { reason: 'Interrupted', failure: evidence, kind: 'crash', hold, addCrashes, addFetchCrashes })
    return 'dead'
  }
  const suspect = row.suspect === 1 || isRunning
  endings.wait(row, { crash_count, fetch_crash_count, suspect, failure, kind: 'crash', raise: true })
  return 'pending'
}

/** Without a stack: it would show this line and nothing of the job. */
function interrupted(row: HotRow, crashCount: number): StoredFailure {
  const { stack: _stack, ...failure } = describeFailure(
    new ChokaQError('CHOKAQ_INTERRUPTED', { jobId: row.id, crashCount }),
  )
  return failure
}

const selectNextDue = `SELECT (SELECT min(run_at) FROM chokaq.jobs_hot WHERE state = 'scheduled') AS run_at,
  chokaq.now_ms() AS now`
const promoteDue = `UPDATE chokaq.jobs_hot h SET state = 'pending' WHERE h.id = ANY(ARRAY(
    SELECT d.id FROM chokaq.jobs_hot d WHERE d.state = 'scheduled' AND d.run_at <= (SELECT chokaq.now_ms())
    ORDER BY d.run_at LIMIT $1 FOR UPDATE SKIP LOCKED))
  RETURNING 1`

interface NextDue {
  readonly run_at: number | null
  readonly now: number
}

/**
 * promote: scheduled -> pending
 * Precondition: run_at has come.
 * Returns how many, and how long until the next is due.
 * Who: any worker.
 */
export async function promote(tx: Transaction, { limit }: { readonly limit: number }): Promise<Promotion> {
  const { session } = tx
  const next = await session.get<NextDue>(selectNextDue)
  if (next === undefined || next.run_at === null || next.run_at > next.now) return promotion(0, next)
  const promoted = await session.all(promoteDue, limit)
  if (promoted.length > 0) tx.jobsBecameReady = true
  return promotion(promoted.length, await session.get<NextDue>(selectNextDue))
}

function promotion(promotedCount: number, next: NextDue | undefined): Promotion {
  const isNone = next === undefined || next.run_at === null
  return { promotedCount, nextDueInMs: isNone ? undefined : Math.max(0, (next.run_at ?? 0) - next.now) }
}
