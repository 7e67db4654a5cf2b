/** Endings other than success: the job leaves hot. */
import type { CounterSum } from '../../../core/counters.ts'
import type { StoredFailure } from '../../../core/failure.ts'
import { refusals } from '../../../core/outcome.ts'
import type { SettleAction, SettleOutcome } from '../../../core/storage.ts'
import type { Transaction } from '../write-transaction.ts'
import { holdsKey } from './ledger.ts'
import { type HotRow, moveToArchive, moveToCancelled, moveToDlq, plainBurial } from './leave-hot.ts'

type Bury = Extract<SettleAction, { readonly kind: 'bury' }>
type Skip = Extract<SettleAction, { readonly kind: 'skip' }>

/**
 * bury, refuse: fetched | processing -> dlq, with reason and history; with hold also a marker in_doubt without expiry
 * Precondition: lease.
 * Returns dead.
 * Who: the owner.
 */
export function bury(tx: Transaction, row: HotRow, action: Bury, counters: CounterSum): SettleOutcome {
  const { reason, failure, hold } = action
  const terminalForMs = action.terminalForMs ?? null
  const isRefusal = refusals.has(reason)
  const addFailures = !isRefusal && failure !== null && row.state === 'processing' ? 1 : 0
  moveToDlq(tx, row, { ...plainBurial, reason, failure, kind: reason, hold, addFailures, terminalForMs }, counters)
  if (!isRefusal) counters.add('jobs.failed', row, reason)
  if (reason === 'EmptyKey') counters.add('idempotency.claims', row, 'empty_key')
  return 'dead'
}

/**
 * skip: fetched | processing -> archive as skipped, with duplicate_of and the stored result
 * Precondition: lease; the key has a holder that stays accountable, with the same fingerprint.
 * Returns skipped, which is never counted as success.
 * Who: the owner.
 */
export function skip(tx: Transaction, row: HotRow, action: Skip, counters: CounterSum): SettleOutcome {
  moveToArchive(tx, row.rowid, 'skipped', action.duplicateOf, action.result)
  const isWaitedFor = action.holder === 'in-progress' || action.holder === 'in-review'
  counters.add('jobs.skipped', row)
  counters.add('idempotency.claims', row, isWaitedFor ? 'in_progress_duplicate' : 'completed_duplicate')
  return 'skipped'
}

/**
 * cancel: fetched | processing -> archive as cancelled; with hold -> dlq in doubt, because a review handler had started
 * Precondition: lease.
 * Returns cancelled or dead. `failure` is what ended the attempt, where something did.
 * Who: the owner, or rescue in its place.
 */
export function cancel(
  tx: Transaction,
  row: HotRow,
  hold: boolean,
  failure: StoredFailure | null,
  counters: CounterSum,
): SettleOutcome {
  if (!hold && !holdsKey(tx.session, row.key_hash, row.generation)) {
    moveToCancelled(tx, row, counters)
    return 'cancelled'
  }
  moveToDlq(tx, row, { ...plainBurial, reason: 'InDoubt', failure, kind: 'cancelled', hold: true }, counters)
  return 'dead'
}
