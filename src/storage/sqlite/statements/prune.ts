/** Retention: bounded deletes, oldest first, so that no sweep holds the write lock for long; and the age of metrics. */
import { CounterSum } from '../../../core/counters.ts'
import type { PruneCounts, PruneLimits } from '../../../core/storage.ts'
import type { Session } from '../session.ts'
import { pruneLedger } from './ledger.ts'
import { rollUp } from './metrics.ts'
import type { Transaction } from '../write-transaction.ts'

interface Deleted {
  readonly queue: string
  readonly type: string
}

const pruned = {
  archive: {
    // One index step per queue instead of a scan of all rows.
    nextQueue: `SELECT queue FROM chokaq_jobs_archive INDEXED BY chokaq_jobs_archive_finished
      WHERE expires_at IS NULL AND queue > ? ORDER BY queue LIMIT 1`,
    delete: `DELETE FROM chokaq_jobs_archive WHERE rowid IN (SELECT rowid FROM chokaq_jobs_archive
      INDEXED BY chokaq_jobs_archive_finished WHERE expires_at IS NULL AND queue = ? AND finished_at <= ?
      ORDER BY finished_at LIMIT ?) RETURNING queue, type`,
    override: 'SELECT archive_retention_ms AS ms FROM chokaq_queues WHERE name = ?',
  },
  dlq: {
    nextQueue: `SELECT queue FROM chokaq_jobs_dlq INDEXED BY chokaq_jobs_dlq_finished WHERE in_doubt = 0 AND queue > ?
      ORDER BY queue LIMIT 1`,
    delete: `DELETE FROM chokaq_jobs_dlq WHERE rowid IN (SELECT rowid FROM chokaq_jobs_dlq
      INDEXED BY chokaq_jobs_dlq_finished WHERE in_doubt = 0 AND queue = ? AND finished_at <= ?
      ORDER BY finished_at LIMIT ?) RETURNING queue, type`,
    override: 'SELECT dlq_retention_ms AS ms FROM chokaq_queues WHERE name = ?',
  },
} as const

const deleteStubs = `DELETE FROM chokaq_jobs_archive WHERE rowid IN (SELECT rowid FROM chokaq_jobs_archive
  INDEXED BY chokaq_jobs_archive_stub WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?)
  RETURNING queue, type`
const deleteMarkers = `DELETE FROM chokaq_idempotency_markers WHERE rowid IN (SELECT rowid
  FROM chokaq_idempotency_markers INDEXED BY chokaq_idempotency_markers_expiry
  WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?)`

/**
 * purge by retention: archive | dlq -> nowhere
 * Precondition: older than the retention of its queue; stubs and markers: expired. Never a row in doubt.
 * Returns how many of each went; at most `limit` of each.
 * Who: any worker.
 */
export function prune(tx: Transaction, limits: PruneLimits): PruneCounts {
  const { session, nowMs } = tx
  const counters = new CounterSum()
  const stubs = session.all<Deleted>(deleteStubs, nowMs, limits.limit)
  for (const row of stubs) counters.add('jobs.pruned', row, 'archive')
  const left = limits.limit - stubs.length
  const archived = pruneQueues(tx, 'archive', limits.archiveRetentionMs, left, counters)
  const deadCount = pruneQueues(tx, 'dlq', limits.dlqRetentionMs, limits.limit, counters)
  const markerCount = session.run(deleteMarkers, nowMs, limits.limit)
  const effectCount = pruneLedger(tx, limits.limit)
  tx.addCounters(counters)
  rollUp(tx)
  return { archivedCount: stubs.length + archived, deadCount, markerCount, effectCount }
}

function pruneQueues(
  { session, nowMs }: Transaction,
  pillar: 'archive' | 'dlq',
  defaultMs: number,
  limit: number,
  counters: CounterSum,
): number {
  const sql = pruned[pillar]
  let count = 0
  for (const queue of queuesOf(session, sql.nextQueue)) {
    if (count >= limit) break
    const retentionMs = session.get<{ readonly ms: number | null }>(sql.override, queue)?.ms ?? defaultMs
    const rows = session.all<Deleted>(sql.delete, queue, Math.floor(nowMs - retentionMs), limit - count)
    for (const row of rows) counters.add('jobs.pruned', row, pillar)
    count += rows.length
  }
  return count
}

function queuesOf(session: Session, nextQueue: string): readonly string[] {
  const queues: string[] = []
  for (;;) {
    const row = session.get<{ readonly queue: string }>(nextQueue, queues.at(-1) ?? '')
    if (row === undefined) return queues
    queues.push(row.queue)
  }
}
