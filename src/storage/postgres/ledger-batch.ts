/** A worker's batch for the ledger: one transaction, cut in halves where the database refuses a row. */
import type { LedgerRequest, LedgerVerdict } from '../../core/ledger.ts'
import { bisected } from './batches.ts'
import { ledger } from './statements/ledger.ts'
import type { Unit } from './transactions.ts'

/** Waits that skipping cannot save: for a memo that another transaction is about to remember. */
const partLockTimeoutMs = 25

/** One verdict per request, in order. A request that the database refuses changes nothing. */
export function ledgerBatch(
  run: <T>(unit: Unit<T>) => Promise<T>,
  requests: readonly LedgerRequest[],
): Promise<readonly LedgerVerdict[]> {
  return bisected<LedgerRequest, LedgerVerdict>(
    requests,
    (rows, isWhole) =>
      run({
        // Repeating it finds its own rows.
        isRepeatable: true,
        beforeCommit: 'ledger-before-commit',
        committed: 'ledger-committed',
        ...(isWhole ? {} : { lockTimeoutMs: partLockTimeoutMs }),
        work: (tx) => ledger(tx, rows),
      }),
    (_, error) => ({ kind: 'refused', error }),
  )
}
