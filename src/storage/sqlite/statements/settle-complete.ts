/** The usual end of a job, kept lean: one read, one copy, one delete, and the marker where it has a key. */
import type { CounterSum } from '../../../core/counters.ts'
import type { NewJob } from '../../../core/job.ts'
import type { Lease } from '../../../core/lease.ts'
import { histogramLabel } from '../../../core/metrics.ts'
import type { DeadChild, SettleAction, SettleVerdict } from '../../../core/storage.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../write-transaction.ts'
import { deadChild, deadChildNews } from '../../dead-child.ts'
import { buryOnArrival, enqueueOne } from './enqueue.ts'
import { type HotRow, hotRowColumns, leaveStub, moveToArchive, moveToDlq, plainBurial } from './leave-hot.ts'
import { hasDouble, hasDoubt } from './ledger.ts'
import { findLiveMarker, writeMarker } from './markers.ts'

type Complete = Extract<SettleAction, { readonly kind: 'complete' }>

export interface CompletableRow {
  readonly rowid: number
  readonly type: string
  readonly queue: string
  readonly generation: number
  readonly startedAtMs: number
  readonly keyHash: string | null
  readonly fingerprint: string | null
}

const selectCompletable = `SELECT rowid, type, queue, generation, started_at, key_hash, fingerprint FROM chokaq_jobs_hot
  WHERE id = ? AND token = ? AND state = 'processing'`
type CompletableTuple = readonly [number, string, string, number, number, string | null, string | null]

/** Only a started job can be complete. */
export function findCompletable(session: Session, { jobId, token }: Lease): CompletableRow | undefined {
  const found = session.tuples<CompletableTuple>(selectCompletable).get(jobId, token)
  if (found === undefined) return undefined
  const [rowid, type, queue, generation, startedAtMs, keyHash, fingerprint] = found
  return { rowid, type, queue, generation, startedAtMs, keyHash, fingerprint }
}

/**
 * complete: processing -> archive, with marker, result and children; -> dlq as CompleteConflict, with all evidence,
 * where a live marker of another job stands on the key
 * Precondition: lease. A cancel that was asked for meanwhile came too late: what is done is done.
 * Returns completed or conflict.
 * Who: the owner.
 */
export function complete(
  tx: Transaction,
  { jobId, token }: Lease,
  row: CompletableRow,
  action: Complete,
  counters: CounterSum,
): SettleVerdict {
  const { rowid, keyHash, generation, fingerprint } = row
  const { session, nowMs } = tx
  counters.add('duration', row, histogramLabel(nowMs - row.startedAtMs))
  if (action.guard === true && (hasDoubt(session, keyHash, generation) || hasDouble(session, keyHash, generation))) {
    return inDoubt(tx, rowid, counters)
  }
  if (keyHash !== null) {
    const live = findLiveMarker(session, keyHash, nowMs)
    if (live !== undefined && live.job_id !== jobId) return conflict(tx, row, live.job_id, action, counters)
    const expiresAtMs = Math.ceil(nowMs + action.markerLifeMs)
    const key = { keyHash, jobId, generation, token, fingerprint }
    const state = action.compensated === true ? 'compensated' : 'completed'
    writeMarker(session, { ...key, state, result: action.result, expiresAtMs }, nowMs)
    counters.add('idempotency.claims', row, 'completed')
  }
  const deadChildren = action.children.flatMap((child) => enqueueChild(tx, child, counters))
  if (action.keep.kind === 'stub') leaveStub(tx, rowid, Math.ceil(nowMs + action.keep.forMs))
  else moveToArchive(tx, rowid, 'completed', null, action.result)
  counters.add('jobs.completed', row)
  const news = deadChildren.length === 0 ? {} : { deadChildren }
  return { kind: 'settled', outcome: 'completed', repeated: false, ...news }
}

/** The handler returned, but one of its calls is in doubt or happened twice: a person decides before the key is free. */
function inDoubt(tx: Transaction, rowid: number, counters: CounterSum): SettleVerdict {
  const row = tx.session.get<HotRow>(selectWhole, rowid)
  if (row === undefined) return { kind: 'lost' }
  moveToDlq(tx, row, { ...plainBurial, reason: 'InDoubt', kind: 'InDoubt', failure: null, hold: true }, counters)
  return { kind: 'settled', outcome: 'dead', repeated: false }
}

/** A child whose key or id is held for another payload would be lost silently; it waits for a person instead. */
function enqueueChild(tx: Transaction, child: NewJob, counters: CounterSum): readonly DeadChild[] {
  const dead = deadChild(child, enqueueOne(tx, child, counters))
  if (dead === undefined || !buryOnArrival(tx, dead)) return []
  // Accepted with its parent, and dead at once: counted as both, so that the books balance.
  counters.add('jobs.enqueued', child)
  return [deadChildNews(dead)]
}

const selectWhole = `SELECT ${hotRowColumns} FROM chokaq_jobs_hot WHERE rowid = ?`

/** Cannot happen while claims hold; an alarm with everything a person needs, and never a second result for one key. */
function conflict(
  tx: Transaction,
  { rowid }: CompletableRow,
  holderId: string,
  { result }: Complete,
  counters: CounterSum,
): SettleVerdict {
  const row = tx.session.get<HotRow>(selectWhole, rowid)
  if (row === undefined) return { kind: 'lost' }
  const burial = { ...plainBurial, reason: 'CompleteConflict', kind: 'conflict', failure: null } as const
  moveToDlq(tx, row, { ...burial, result, duplicateOf: holderId }, counters)
  counters.add('idempotency.claims', row, 'complete_conflict')
  return { kind: 'settled', outcome: 'conflict', repeated: false }
}
