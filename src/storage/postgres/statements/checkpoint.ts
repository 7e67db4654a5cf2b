/** A handler's own transaction, with the checkpoint that commits with it. */
import type { Lease } from '../../../core/lease.ts'
import type { CheckpointRequest } from '../../../core/storage.ts'
import type { Session } from '../session.ts'
import { leaveDone, recalled } from './ledger-memos.ts'

const selectOwned = `SELECT 1 AS owned FROM chokaq.jobs_hot WHERE id = $1 AND token = $2 AND state = 'processing'`

export type CheckpointState =
  { readonly kind: 'free' } | { readonly kind: 'lost' } | { readonly kind: 'replayed'; readonly result: string | null }

/** Before the handler's work: whether there is anything to do. Takes no lock, so the work holds up nobody. */
export async function checkpointState(session: Session, { lease, ref }: CheckpointRequest): Promise<CheckpointState> {
  if ((await session.get(selectOwned, lease.jobId, lease.token)) === undefined) return { kind: 'lost' }
  const known = await recalled(session, ref)
  return known === undefined ? { kind: 'free' } : { kind: 'replayed', result: known.result }
}

/**
 * checkpoint: (nothing) -> done, together with the handler's rows
 * Precondition: lease, locked until the commit: who takes the job away comes before this or after it.
 * Returns whether the lease still stood; where it does not, the transaction must be rolled back.
 * Who: the owner, just before the commit.
 */
export async function leaveCheckpoint(
  session: Session,
  request: CheckpointRequest,
  result: string | null,
): Promise<boolean> {
  const { jobId, token } = request.lease
  if ((await session.get(`${selectOwned} FOR SHARE`, jobId, token)) === undefined) return false
  await leaveDone(session, [{ ...request, result }])
  return true
}

/**
 * Whether a commit whose reply was lost took effect. The row is locked for this, so a commit that is still on its way is
 * waited for.
 */
export async function isCheckpointLeft(session: Session, request: CheckpointRequest): Promise<boolean> {
  const { jobId }: Lease = request.lease
  await session.all('SELECT 1 FROM chokaq.jobs_hot WHERE id = $1 FOR UPDATE', jobId)
  return (await recalled(session, request.ref))?.id === request.id
}
