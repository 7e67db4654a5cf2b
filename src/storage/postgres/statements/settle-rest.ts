/** Endings other than the plain success: read the rows under lock, decide each, write all. */
import { unreachable } from '../../../core/errors.ts'
import { leaseId } from '../../../core/lease.ts'
import { endsAttempt, refusals } from '../../../core/outcome.ts'
import type { SettleAction, Settlement, SettleOutcome } from '../../../core/storage.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../transactions.ts'
import { Endings, type HotRow, hotRowColumns, isInterruptedReview, lockRows } from './leave-hot.ts'
import { barredOf } from './ledger-holds.ts'

type ActionOf<K extends SettleAction['kind']> = Extract<SettleAction, { readonly kind: K }>

const lockOwned = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now),
  i AS MATERIALIZED (SELECT r.id, r.token FROM json_to_recordset($1::text::json) AS r(id uuid, token bigint))
  SELECT ${hotRowColumns} FROM chokaq.jobs_hot h CROSS JOIN c
  WHERE h.id = ANY(ARRAY(SELECT id FROM i)) AND h.token = ANY(ARRAY(SELECT token FROM i))
    AND h.state IN ('fetched', 'processing')
  ORDER BY h.id FOR UPDATE OF h`

function leasesOf(settlements: readonly Settlement[]): string {
  return JSON.stringify(settlements.map(({ lease }) => ({ id: lease.jobId, token: lease.token })))
}

/** The outcome of each lease that took effect; a lease that is absent has to be read back. */
export async function settleRest(
  tx: Transaction,
  settlements: readonly Settlement[],
): Promise<ReadonlyMap<string, SettleOutcome>> {
  const rows = await lockRows(tx.session, lockOwned, leasesOf(settlements))
  const byLease = new Map(rows.map((row) => [leaseId({ jobId: row.id, token: row.token }), row]))
  const doneKeys = await keysThatAreDone(tx.session, settlements, byLease)
  const endings = new Endings()
  const outcomes = new Map<string, SettleOutcome>()
  for (const { lease, action } of settlements) {
    const row = byLease.get(leaseId(lease))
    if (row === undefined) continue
    if (endsAttempt(action)) endings.ran(row)
    outcomes.set(leaseId(lease), end(endings, row, action, doneKeys))
  }
  await endings.write(tx)
  return outcomes
}

// Nothing of the rows is read where they may all complete, which is nearly always.
const lockGuarded = `
  WITH i AS MATERIALIZED (SELECT r.id, r.token FROM json_to_recordset($1::text::json) AS r(id uuid, token bigint))
  SELECT count(*)::int AS count FROM (SELECT FROM chokaq.jobs_hot h
    WHERE h.id = ANY(ARRAY(SELECT id FROM i)) AND h.token = ANY(ARRAY(SELECT token FROM i)) AND h.state = 'processing'
      AND h.key_hash IS NOT NULL ORDER BY h.id FOR UPDATE) h`

/** The handlers returned, but a call of theirs is in doubt or happened twice: a person decides before the key is free. */
export async function buryDoubtful(
  tx: Transaction,
  settlements: readonly Settlement[],
): Promise<ReadonlyMap<string, SettleOutcome>> {
  if (settlements.length === 0) return new Map()
  const guarded = leasesOf(settlements)
  if ((await tx.session.get<{ readonly count: number }>(lockGuarded, guarded))?.count === 0) return new Map()
  const barred = await barredOf(tx.session, guarded)
  if (barred.size === 0) return new Map()
  const rows = await lockRows(
    tx.session,
    lockOwned,
    leasesOf(settlements.filter(({ lease }) => barred.has(leaseId(lease)))),
  )
  const doubtful = rows.filter((row) => row.bars && row.state === 'processing')
  const endings = new Endings()
  for (const row of doubtful) {
    endings.ran(row)
    endings.bury(row, { reason: 'InDoubt', failure: null, kind: 'InDoubt', hold: true })
  }
  await endings.write(tx)
  return new Map(doubtful.map((row) => [leaseId({ jobId: row.id, token: row.token }), 'dead']))
}

function end(endings: Endings, row: HotRow, action: SettleAction, doneKeys: ReadonlySet<string>): SettleOutcome {
  switch (action.kind) {
    case 'retry':
      return retry(endings, row, action)
    case 'defer':
      return defer(endings, row, action, doneKeys)
    case 'release':
      return release(endings, row)
    case 'bury':
      return bury(endings, row, action)
    case 'skip':
      return skip(endings, row, action)
    case 'cancel':
      return cancel(endings, row, action.hold)
    case 'complete':
      return unreachable(action as never, 'a completion among the rest')
    default:
      return unreachable(action, 'a settle action')
  }
}

/**
 * retry: fetched | processing -> scheduled (with a delay) | pending; where a cancel was asked for meanwhile -> archive as
 * cancelled, or dlq in doubt where a review handler had started
 * Precondition: lease.
 * Returns retried, cancelled or dead.
 * Who: the owner.
 */
function retry(endings: Endings, row: HotRow, action: ActionOf<'retry'>): SettleOutcome {
  const { failure, charge, reason, delayMs } = action
  const { counters } = endings
  const addFailures = charge === 'failure' ? 1 : 0
  const failure_count = row.failure_count + addFailures
  if (charge === 'failure') counters.add('jobs.failed', row, reason)
  if (row.cancel_requested_at !== null) {
    if (isInterruptedReview(row) || row.holdsKey) {
      endings.bury(row, { reason: 'InDoubt', failure, kind: reason, hold: true, addFailures })
      return 'dead'
    }
    endings.cancelled(row, { failure_count, failure, kind: reason })
    return 'cancelled'
  }
  const run_at = Math.ceil(row.now + Math.max(0, delayMs))
  const state = run_at <= row.now ? 'pending' : 'scheduled'
  endings.wait(row, { state, run_at, failure_count, failure, kind: reason })
  counters.add('jobs.retried', row, reason)
  return 'retried'
}

/**
 * defer: fetched | processing -> scheduled; a key the worker computed is not kept
 * Precondition: lease; the key is held and the handler says onDuplicate: defer.
 * Returns deferred.
 * Who: the owner.
 */
function defer(
  endings: Endings,
  row: HotRow,
  { delayMs }: ActionOf<'defer'>,
  doneKeys: ReadonlySet<string>,
): SettleOutcome {
  const { run_at, ...undone } = { ...undoFastStart(row), run_at: Math.ceil(row.now + Math.max(0, delayMs)) }
  endings.wait(row, { state: 'scheduled', run_at, attempt: undone.attempt, forget: row.key_computed === 1 })
  const isDone = row.key_hash !== null && doneKeys.has(row.key_hash)
  endings.counters.add('jobs.deferred', row)
  endings.counters.add('idempotency.claims', row, isDone ? 'completed_duplicate' : 'in_progress_duplicate')
  return 'deferred'
}

/** A fast start whose handler never ran is undone: attempt, times and, where this was the first start, its lifetime. */
export function undoFastStart(row: HotRow): Pick<HotRow, 'attempt' | 'started_at' | 'first_started_at'> {
  const { attempt, started_at, first_started_at } = row
  if (row.fast_started === 0) return { attempt, started_at, first_started_at }
  const isFirst = first_started_at === started_at
  return { attempt: attempt - 1, started_at: null, first_started_at: isFirst ? null : first_started_at }
}

/**
 * release: fetched | processing -> pending, at its old place in the queue
 * Precondition: lease; the handler never ran. Costs nothing; a fast start gets its attempt back.
 * Returns released.
 * Who: the owner.
 */
function release(endings: Endings, row: HotRow): SettleOutcome {
  endings.wait(row, undoFastStart(row))
  return 'released'
}

/**
 * bury, refuse: fetched | processing -> dlq, with reason and history; with hold also a marker in_doubt without expiry
 * Precondition: lease.
 * Returns dead.
 * Who: the owner.
 */
function bury(endings: Endings, row: HotRow, action: ActionOf<'bury'>): SettleOutcome {
  const { reason, failure, hold, terminalForMs } = action
  const isRefusal = refusals.has(reason)
  const addFailures = !isRefusal && failure !== null && row.state === 'processing' ? 1 : 0
  const terminal = terminalForMs === undefined ? {} : { terminalForMs }
  endings.bury(row, { reason, failure, kind: reason, hold, addFailures, ...terminal })
  if (!isRefusal) endings.counters.add('jobs.failed', row, reason)
  if (reason === 'EmptyKey') endings.counters.add('idempotency.claims', row, 'empty_key')
  return 'dead'
}

/**
 * skip: fetched | processing -> archive as skipped, with duplicate_of and the stored result
 * Precondition: lease; the key has a holder that stays accountable, with the same fingerprint.
 * Returns skipped, which is never counted as success.
 * Who: the owner.
 */
function skip(endings: Endings, row: HotRow, { duplicateOf, holder, result }: ActionOf<'skip'>): SettleOutcome {
  endings.archive(row, 'skipped', { duplicateOf, result })
  const isWaitedFor = holder === 'in-progress' || holder === 'in-review'
  endings.counters.add('jobs.skipped', row)
  endings.counters.add('idempotency.claims', row, isWaitedFor ? 'in_progress_duplicate' : 'completed_duplicate')
  return 'skipped'
}

/**
 * cancel: fetched | processing -> archive as cancelled; with hold -> dlq in doubt, because a review handler had started
 * Precondition: lease.
 * Returns cancelled or dead.
 * Who: the owner.
 */
function cancel(endings: Endings, row: HotRow, hold: boolean): SettleOutcome {
  if (!hold && !row.holdsKey) {
    endings.cancelled(row)
    return 'cancelled'
  }
  endings.bury(row, { reason: 'InDoubt', failure: null, kind: 'cancelled', hold: true })
  return 'dead'
}

const selectDoneKeys = `SELECT encode(m.key_hash, 'hex') AS key FROM chokaq.idempotency_markers m
  WHERE m.key_hash = ANY(SELECT decode(t.key, 'hex') FROM unnest($1::text[]) AS t(key)) AND m.state <> 'in_doubt'
    AND (m.expires_at IS NULL OR m.expires_at > (SELECT chokaq.now_ms()))`

/** For the counters of deferred duplicates only: what they waited for is done by now. */
async function keysThatAreDone(
  session: Session,
  settlements: readonly Settlement[],
  rows: ReadonlyMap<string, HotRow>,
): Promise<ReadonlySet<string>> {
  const keys = settlements.flatMap(({ lease, action }) => {
    const key = action.kind === 'defer' ? rows.get(leaseId(lease))?.key_hash : undefined
    return key === undefined || key === null ? [] : [key]
  })
  if (keys.length === 0) return new Set()
  const found = await session.all<{ readonly key: string }>(selectDoneKeys, keys)
  return new Set(found.map(({ key }) => key))
}
