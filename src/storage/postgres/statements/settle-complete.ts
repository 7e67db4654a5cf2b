/**
 * The usual end of a job, kept lean: one statement deletes the rows, leaves the markers, writes the archive and counts.
 * Nothing but the tokens and results passes through JavaScript.
 */
import { leaseId, type Lease } from '../../../core/lease.ts'
import type { SettleAction } from '../../../core/storage.ts'
import { jobColumns } from '../../row-mapping.ts'
import type { Transaction } from '../transactions.ts'
import { histogramLabelOf } from './histogram.ts'
import { columnsOf } from './leave-hot.ts'

export type Complete = Extract<SettleAction, { readonly kind: 'complete' }>

export interface Completion {
  readonly lease: Lease
  readonly action: Complete
}

const kept = jobColumns.join(', ')
const archived = columnsOf({
  payload: 'CASE WHEN g.stub IS NULL THEN g.payload END',
  tags: 'CASE WHEN g.stub IS NULL THEN g.tags END',
  failure: 'CASE WHEN g.stub IS NULL THEN g.failure END',
  history: 'CASE WHEN g.stub IS NULL THEN g.history END',
})

// `id = ANY AND token = ANY` keeps the index plan; a join with the incoming rows fell to a hash of the whole table. A
// token belongs to one row, so the two lists cannot meet crosswise.
// What belongs to each row is joined once, with a FULL JOIN, because that one is always a hash join: the planner guesses
// that one row is deleted, and an inner join then walked the list once per row.
// A live marker of another job is never replaced: its row comes back without a marker and is parked as a conflict.
const completeRows = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now),
  i AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::text::json)
      AS r(id uuid, token bigint, returned text, life bigint, stub bigint, marker text)),
  gone AS (DELETE FROM chokaq.jobs_hot WHERE id = ANY(ARRAY(SELECT id FROM i ORDER BY id))
    AND token = ANY(ARRAY(SELECT token FROM i)) AND state = 'processing' RETURNING *),
  p AS MATERIALIZED (SELECT gone.*, i.returned, i.life, i.stub, i.marker, c.now
    FROM c CROSS JOIN gone FULL JOIN i ON i.id = gone.id AND i.token = gone.token),
  marked AS (
    INSERT INTO chokaq.idempotency_markers AS m
      (key_hash, state, job_id, generation, token, created_at, expires_at, fingerprint, result)
    SELECT p.key_hash, p.marker, p.id, p.generation, p.token, p.now, p.now + p.life, p.fingerprint, p.returned::json
    FROM p WHERE p.key_hash IS NOT NULL ORDER BY p.key_hash
    ON CONFLICT (key_hash) DO UPDATE SET state = excluded.state, job_id = excluded.job_id,
      generation = excluded.generation, token = excluded.token, created_at = excluded.created_at,
      expires_at = excluded.expires_at, fingerprint = excluded.fingerprint, result = excluded.result, failure = NULL
      WHERE m.job_id = excluded.job_id OR m.expires_at <= excluded.created_at
    RETURNING key_hash),
  g AS NOT MATERIALIZED (
    SELECT p.*, p.key_hash IS NOT NULL AND p.key_hash NOT IN (SELECT key_hash FROM marked) AS parked
    FROM p WHERE p.id IS NOT NULL),
  dead AS (
    INSERT INTO chokaq.jobs_dlq (${kept}, reason, in_doubt, duplicate_of, finished_at, result)
    SELECT ${columnsOf({ revision: 'g.revision + 1' })}, 'CompleteConflict', false,
      (SELECT o.job_id FROM chokaq.idempotency_markers o WHERE o.key_hash = g.key_hash), g.now, g.returned::json
    FROM g WHERE g.parked),
  done AS (
    INSERT INTO chokaq.jobs_archive (${kept}, outcome, finished_at, expires_at, result)
    SELECT ${archived}, 'completed', g.now, g.now + g.stub, CASE WHEN g.stub IS NULL THEN g.returned::json END
    FROM g WHERE NOT g.parked),
  sums AS MATERIALIZED (
    SELECT count(*) AS n, g.now, g.queue, g.type, g.key_hash IS NOT NULL AS keyed, g.parked FROM g
    GROUP BY 2, 3, 4, 5, 6),
  counted AS (
    INSERT INTO chokaq.worker_counters (at, value, name, queue, type, label)
    SELECT now, n, CASE WHEN parked THEN 'jobs.dlq' ELSE 'jobs.completed' END, queue, type,
      CASE WHEN parked THEN 'CompleteConflict' ELSE '' END FROM sums
    UNION ALL
    SELECT now, n, 'idempotency.claims', queue, type, CASE WHEN parked THEN 'complete_conflict' ELSE 'completed' END
    FROM sums WHERE keyed
    UNION ALL
    SELECT g.now, count(*), 'duration', g.queue, g.type, ${histogramLabelOf('g.now - g.started_at')} FROM g
    GROUP BY 1, 4, 5, 6)
  SELECT g.id::text AS id, g.token::float8 AS token, g.parked::int AS is_conflict FROM g`

interface CompletedRow {
  readonly id: string
  readonly token: number
  readonly is_conflict: number
}

/**
 * complete: processing -> archive, with marker and result; -> dlq as CompleteConflict, with all evidence, where a live
 * marker of another job stands on the key
 * Precondition: lease. A cancel that was asked for meanwhile came too late: what is done is done.
 * Returns the outcome of each lease that took effect; a lease that is absent has to be read back.
 * Who: the owner.
 */
export async function complete(
  { session }: Transaction,
  completions: readonly Completion[],
): Promise<ReadonlyMap<string, 'completed' | 'conflict'>> {
  if (completions.length === 0) return new Map()
  const incoming = completions.map(({ lease, action }) => ({
    id: lease.jobId,
    token: lease.token,
    returned: action.result,
    life: Math.ceil(action.markerLifeMs),
    stub: action.keep.kind === 'stub' ? Math.ceil(action.keep.forMs) : null,
    marker: action.compensated === true ? 'compensated' : 'completed',
  }))
  const rows = await session.all<CompletedRow>(completeRows, JSON.stringify(incoming))
  return new Map(
    rows.map(({ id, token, is_conflict }) => [
      leaseId({ jobId: id, token }),
      is_conflict === 1 ? 'conflict' : 'completed',
    ]),
  )
}
