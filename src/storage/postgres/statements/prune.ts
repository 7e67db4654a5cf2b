/** Retention, in bounded deletes, oldest first; and the sums of what was counted. */
import { CounterSum } from '../../../core/counters.ts'
import type { PruneCounts, PruneLimits } from '../../../core/storage.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../transactions.ts'
import { pruneLedger } from './ledger-holds.ts'
import { rollUp } from './metrics.ts'

interface Deleted {
  readonly queue: string
  readonly type: string
}

// As an array, which is computed once: a plan that probes `IN (SELECT … LIMIT … SKIP LOCKED)` again for each row deletes
// more than the limit. Two sweepers at once share the work instead of waiting for each other. The queues are found by one index step each.
const oldRows = (table: string, isOld: string): string => `DELETE FROM chokaq.${table} t WHERE t.id = ANY(ARRAY(
    SELECT o.id FROM chokaq.${table} o WHERE ${isOld} FOR UPDATE SKIP LOCKED)) RETURNING t.queue, t.type`
const queuesOf = (table: string, isKept: string): string => `
  WITH RECURSIVE q AS (
    (SELECT t.queue FROM chokaq.${table} t WHERE ${isKept} ORDER BY t.queue LIMIT 1)
    UNION ALL
    SELECT (SELECT t.queue FROM chokaq.${table} t WHERE ${isKept} AND t.queue > q.queue ORDER BY t.queue LIMIT 1)
    FROM q WHERE q.queue IS NOT NULL)
  SELECT q.queue, s.archive_retention_ms, s.dlq_retention_ms FROM q LEFT JOIN chokaq.queues s ON s.name = q.queue
  WHERE q.queue IS NOT NULL`

const pruned = {
  archive: {
    queues: queuesOf('jobs_archive', 't.expires_at IS NULL'),
    delete: oldRows(
      'jobs_archive',
      `o.expires_at IS NULL AND o.queue = $1 AND o.finished_at <= (SELECT chokaq.now_ms()) - $2::bigint
        ORDER BY o.finished_at LIMIT $3`,
    ),
  },
  dlq: {
    queues: queuesOf('jobs_dlq', 'NOT t.in_doubt'),
    delete: oldRows(
      'jobs_dlq',
      `NOT o.in_doubt AND o.queue = $1 AND o.finished_at <= (SELECT chokaq.now_ms()) - $2::bigint
        ORDER BY o.finished_at LIMIT $3`,
    ),
  },
} as const

const deleteStubs = oldRows(
  'jobs_archive',
  'o.expires_at IS NOT NULL AND o.expires_at <= (SELECT chokaq.now_ms()) ORDER BY o.expires_at LIMIT $1',
)
const deleteMarkers = `DELETE FROM chokaq.idempotency_markers m WHERE m.key_hash = ANY(ARRAY(
    SELECT o.key_hash FROM chokaq.idempotency_markers o
    WHERE o.expires_at IS NOT NULL AND o.expires_at <= (SELECT chokaq.now_ms())
    ORDER BY o.expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING 1`

/**
 * purge by retention: archive | dlq -> nowhere
 * Precondition: older than the retention of its queue; stubs and markers: expired. Never a row in doubt.
 * Returns how many of each went; at most `limit` of each.
 * Who: any worker.
 */
export async function prune(tx: Transaction, limits: PruneLimits): Promise<PruneCounts> {
  const { session } = tx
  const counters = new CounterSum()
  const stubs = await session.all<Deleted>(deleteStubs, limits.limit)
  for (const row of stubs) counters.add('jobs.pruned', row, 'archive')
  const left = limits.limit - stubs.length
  const archived = await pruneQueues(session, 'archive', limits.archiveRetentionMs, left, counters)
  const deadCount = await pruneQueues(session, 'dlq', limits.dlqRetentionMs, limits.limit, counters)
  const markers = await session.all(deleteMarkers, limits.limit)
  const effectCount = await pruneLedger(session, limits.limit)
  await session.addCounters(counters)
  await rollUp(session)
  return { archivedCount: stubs.length + archived, deadCount, markerCount: markers.length, effectCount }
}

interface QueueRow {
  readonly queue: string
  readonly archive_retention_ms: number | null
  readonly dlq_retention_ms: number | null
}

async function pruneQueues(
  session: Session,
  pillar: 'archive' | 'dlq',
  defaultMs: number,
  limit: number,
  counters: CounterSum,
): Promise<number> {
  const sql = pruned[pillar]
  let count = 0
  for (const row of await session.all<QueueRow>(sql.queues)) {
    if (count >= limit) break
    const retentionMs = (pillar === 'archive' ? row.archive_retention_ms : row.dlq_retention_ms) ?? defaultMs
    const deleted = await session.all<Deleted>(sql.delete, row.queue, Math.ceil(retentionMs), limit - count)
    for (const each of deleted) counters.add('jobs.pruned', each, pillar)
    count += deleted.length
  }
  return count
}
