/** Liveness of a worker, and what its types say of themselves. */
import { leaseId, type Lease } from '../../../core/lease.ts'
import type { BeatRequest, BeatVerdict, JobTypeRow, WorkerInfo } from '../../../core/storage.ts'
import type { Transaction } from '../write-transaction.ts'
import { giveBack } from './settle-waiting.ts'

const upsertWorker = `INSERT INTO chokaq_workers (id, name, identity, queues, types, concurrency, running_count,
    buffered_count, beat, started_at, beat_at)
  VALUES (?, ?, ?, ?, ?, ?, 0, 0, 1, ?, ?)
  ON CONFLICT (id) DO UPDATE SET name = excluded.name, identity = excluded.identity, queues = excluded.queues,
    types = excluded.types, concurrency = excluded.concurrency, beat = beat + 1, beat_at = excluded.beat_at`

/** registerWorker: the row that says the worker lives. Who: the worker, before its first fetch and after `unknown`. */
export function registerWorker({ session, nowMs }: Transaction, info: WorkerInfo): void {
  const { id, name, identity, queues, types, concurrency } = info
  const texts = [JSON.stringify(identity), JSON.stringify(queues), JSON.stringify(types)] as const
  session.run(upsertWorker, id, name, ...texts, concurrency, nowMs, nowMs)
}

const beat = `UPDATE chokaq_workers SET beat = beat + 1, beat_at = ?, concurrency = ?, running_count = ?,
  buffered_count = ? WHERE id = ?`
const selectCancelRequested = `SELECT id FROM chokaq_jobs_hot INDEXED BY chokaq_jobs_hot_cancel
  WHERE cancel_requested_at IS NOT NULL AND worker_id = ?`

const selectOwned = `SELECT 1 AS found FROM chokaq_jobs_hot INDEXED BY chokaq_jobs_hot_owned WHERE worker_id = ? LIMIT 1`

/** heartbeat: moves the counter and tells which of the worker's jobs are to be cancelled. Who: the worker. */
export function heartbeat({ session, nowMs }: Transaction, request: BeatRequest): BeatVerdict {
  const { workerId, concurrency, runningCount, bufferedCount } = request
  if (session.run(beat, nowMs, concurrency, runningCount, bufferedCount, workerId) === 0) return { kind: 'unknown' }
  const rows = session.all<{ readonly id: string }>(selectCancelRequested, workerId)
  const ownsJobs = session.get(selectOwned, workerId) !== undefined
  return { kind: 'alive', cancelRequested: rows.map(({ id }) => id), ownsJobs, atMs: nowMs }
}

const selectOwnedBefore = `SELECT rowid, id, token FROM chokaq_jobs_hot INDEXED BY chokaq_jobs_hot_owned
  WHERE worker_id = ? AND fetched_at < ? ORDER BY id`
const giveBackDisowned = `UPDATE chokaq_jobs_hot SET ${giveBack}, token = ? WHERE rowid = ?`

/**
 * disown: fetched | processing -> pending, as release and with a new token
 * Precondition: owned by the caller, not in its hands, fetched before `fetchedBeforeMs`.
 * Returns how many went back. Nothing is charged: the reply of the fetch was lost, so no handler ran.
 * Who: the owner, with each beat.
 */
export function disown(
  tx: Transaction,
  request: { readonly workerId: string; readonly inHand: readonly Lease[]; readonly fetchedBeforeMs: number },
): number {
  const { session } = tx
  const inHand = new Set(request.inHand.map(leaseId))
  const lost = session
    .all<{
      readonly rowid: number
      readonly id: string
      readonly token: number
    }>(selectOwnedBefore, request.workerId, Math.floor(request.fetchedBeforeMs))
    .filter(({ id, token }) => !inHand.has(leaseId({ jobId: id, token })))
  if (lost.length === 0) return 0
  let token = session.reserveTokens(lost.length)
  for (const { rowid } of lost) session.run(giveBackDisowned, token++, rowid)
  tx.jobsBecameReady = true
  return lost.length
}

/** retireWorker: a worker that has settled all it had says good-bye. What it left nevertheless is rescued. */
export function retireWorker({ session }: Transaction, workerId: string): void {
  session.run('DELETE FROM chokaq_workers WHERE id = ?', workerId)
}

const upsertJobType = `INSERT INTO chokaq_job_types
    (type, queue, keyed, key_scope, allow_raw, answers, payload_schema, updated_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (type) DO UPDATE SET queue = excluded.queue, keyed = excluded.keyed, key_scope = excluded.key_scope,
    allow_raw = excluded.allow_raw, answers = excluded.answers, payload_schema = excluded.payload_schema,
    updated_at = excluded.updated_at`

/** saveJobTypes: the newest worker's answers win. Who: a worker at start. */
export function saveJobTypes({ session, nowMs }: Transaction, rows: readonly JobTypeRow[]): void {
  for (const row of rows) {
    const flags = { keyed: row.keyed ? 1 : 0, allowRaw: row.allowRaw ? 1 : 0 }
    session.run(
      upsertJobType,
      row.type,
      row.queue,
      flags.keyed,
      row.keyScope,
      flags.allowRaw,
      row.answers,
      row.payloadSchema,
      nowMs,
    )
  }
}
