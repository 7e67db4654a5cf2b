/**
 * How an owned job ends or waits again. One statement group per ending:
 *
 *   complete                 -> archive, or dlq where another job's live marker stands   settle-complete.ts
 *   retry, defer, release    -> scheduled | pending                                      settle-waiting.ts
 *   bury (and refuse), skip, cancel -> dlq | archive                                     settle-leaving.ts
 *
 * The guard of all of them is (id, token, state): a row whose token has risen belongs to someone else by now. A settle
 * never raises the token, so where the guard finds nothing, the same (id, token) in the archive, in the DLQ or on a row
 * that waits again is this owner's own earlier settle, whose reply was lost; anything else is a lost lease.
 */
import { CounterSum } from '../../../core/counters.ts'
import { unreachable } from '../../../core/errors.ts'
import type { ArchiveOutcome, DeadReason } from '../../../core/job.ts'
import type { Lease } from '../../../core/lease.ts'
import { endsAttempt } from '../../../core/outcome.ts'
import type { SettleAction, Settlement, SettleOutcome, SettleVerdict } from '../../../core/storage.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../write-transaction.ts'
import { countDuration, type HotRow, hotRowColumns } from './leave-hot.ts'
import { complete, findCompletable } from './settle-complete.ts'
import { bury, cancel, skip } from './settle-leaving.ts'
import { defer, release, retry } from './settle-waiting.ts'

/**
 * settle: fetched | processing -> where the action says
 * Returns one verdict per settlement, in order. A settlement whose content the database refuses changes nothing.
 * Who: the owner.
 */
export function settle(tx: Transaction, settlements: readonly Settlement[]): readonly SettleVerdict[] {
  const counters = new CounterSum()
  const verdicts = settlements.map((settlement) =>
    tx.row<SettleVerdict>(
      counters,
      (counted) => settleOne(tx, settlement, counted),
      (error) => ({ kind: 'refused', error }),
    ),
  )
  tx.addCounters(counters)
  return verdicts
}

export function settleOne(tx: Transaction, { lease, action }: Settlement, counters: CounterSum): SettleVerdict {
  if (action.kind === 'complete') {
    const row = findCompletable(tx.session, lease)
    return row === undefined ? readBack(tx.session, lease, action) : complete(tx, lease, row, action, counters)
  }
  const row = tx.session.get<HotRow>(selectOwned, lease.jobId, lease.token)
  if (row === undefined) return readBack(tx.session, lease, action)
  if (endsAttempt(action)) countDuration(tx, row, counters)
  return { kind: 'settled', outcome: settleOwned(tx, row, action, counters), repeated: false }
}

const selectOwned = `SELECT ${hotRowColumns} FROM chokaq_jobs_hot
  WHERE id = ? AND token = ? AND state IN ('fetched', 'processing')`

function settleOwned(
  tx: Transaction,
  row: HotRow,
  action: Exclude<SettleAction, { readonly kind: 'complete' }>,
  counters: CounterSum,
): SettleOutcome {
  switch (action.kind) {
    case 'retry':
      return retry(tx, row, action, counters)
    case 'defer':
      return defer(tx, row, action, counters)
    case 'release':
      return release(tx, row)
    case 'bury':
      return bury(tx, row, action, counters)
    case 'skip':
      return skip(tx, row, action, counters)
    case 'cancel':
      return cancel(tx, row, action.hold, null, counters)
    default:
      return unreachable(action, 'a settle action')
  }
}

const selectArchived = 'SELECT outcome FROM chokaq_jobs_archive WHERE id = ? AND token = ?'
const selectDead = 'SELECT reason FROM chokaq_jobs_dlq WHERE id = ? AND token = ?'
const selectWaiting = `SELECT 1 AS found FROM chokaq_jobs_hot
  WHERE id = ? AND token = ? AND token > 0 AND state IN ('scheduled', 'pending')`

function readBack(session: Session, { jobId, token }: Lease, action: SettleAction): SettleVerdict {
  const settled = (outcome: SettleOutcome): SettleVerdict => ({ kind: 'settled', outcome, repeated: true })
  const archived = session.get<{ readonly outcome: ArchiveOutcome }>(selectArchived, jobId, token)
  if (archived !== undefined) return settled(archived.outcome)
  const dead = session.get<{ readonly reason: DeadReason }>(selectDead, jobId, token)
  if (dead !== undefined) return settled(dead.reason === 'CompleteConflict' ? 'conflict' : 'dead')
  if (session.get(selectWaiting, jobId, token) === undefined) return { kind: 'lost' }
  if (action.kind === 'defer') return settled('deferred')
  return settled(action.kind === 'release' ? 'released' : 'retried')
}
