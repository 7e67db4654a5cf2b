/** A handler's own transaction on this storage's connection, with the checkpoint that commits with it. */
import type { CheckpointRequest, CheckpointVerdict } from '../../../core/storage.ts'
import type { Transaction } from '../write-transaction.ts'
import { isOwned, recalled, remember } from './ledger.ts'

/**
 * checkpoint: (nothing) -> done, together with the handler's rows
 * Precondition: lease. A single writer makes the look and the commit one.
 * Returns ran with the result, replayed where it stood already, or lost.
 * Who: the owner.
 */
export function runCheckpoint(
  tx: Transaction,
  request: CheckpointRequest,
  work: (handle: unknown) => string | null,
): CheckpointVerdict {
  const { session } = tx
  if (!isOwned(session, request.lease)) return { kind: 'lost' }
  const known = recalled(session, request.ref)
  if (known !== undefined) return { kind: 'replayed', result: known.result }
  const result = work(session.db.handle)
  remember(tx, { ...request, kind: 'remember', result })
  return { kind: 'ran', result }
}
