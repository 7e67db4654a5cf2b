/**
 * The usual end of a job, kept lean: one statement deletes the rows, leaves the markers, writes the archive and counts.
 * Nothing but the tokens and results passes through JavaScript.
 */
import { leaseId, type Lease } from '../../../core/lease.ts'
import type { SettleAction } from '../../../core/storage.ts'
import { jobColumns } from '../../row-mapping.ts'
import type { Transaction } from '../transactions.ts'
import { arrayText } from './array-text.ts'
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
// Read several times below, so they stand first: a column is found by walking over those before it.
const readOften = ['id', 'token', 'queue', 'type', 'key_hash', 'started_at'] as const
const deleted = [...new Set([...readOften, ...jobColumns])].map((column) => `h.${column}`).join(', ')
const isParked = '(g.key_hash IS NOT NULL AND g.key_hash NOT IN (SELECT key_hash FROM marked))'

// The incoming rows are sorted, and each finds its own by the primary key. `= ANY (ARRAY[…])` of one element says what `=`
// says, but no join other than the walk over the incoming rows can use it: with `=` the planner, which knows nothing of
// how many there are, may read the whole table into a hash.
// The rows are kept once and read from there. What is only counted or answered touches the first columns alone.
// A live marker of another job is never replaced: its row comes back without a marker and is parked as a conflict.
// Where all is done as asked, one row says so for all of them.
const completeRows = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now),
  gone AS (
    DELETE FROM chokaq.jobs_hot h
    USING unnest($1::text::uuid[], $2::text::bigint[], $3::text::text[], $4::text::bigint[], $5::text::bigint[],
      $6::text::text[]) AS i(id, token, returned, life, stub, marker)
    WHERE h.id = ANY (ARRAY[i.id]) AND h.token = ANY (ARRAY[i.token]) AND h.state = 'processing'
    RETURNING ${deleted}, (SELECT now FROM c) AS now, i.returned, i.life, i.stub, i.marker),
  marked AS (
    INSERT INTO chokaq.idempotency_markers AS m
      (key_hash, state, job_id, generation, token, created_at, expires_at, fingerprint, result)
    SELECT g.key_hash, g.marker, g.id, g.generation, g.token, g.now, g.now + g.life, g.fingerprint, g.returned::json
    FROM gone g WHERE g.key_hash IS NOT NULL ORDER BY g.key_hash
    ON CONFLICT (key_hash) DO UPDATE SET state = excluded.state, job_id = excluded.job_id,
      generation = excluded.generation, token = excluded.token, created_at = excluded.created_at,
      expires_at = excluded.expires_at, fingerprint = excluded.fingerprint, result = excluded.result, failure = NULL
      WHERE m.job_id = excluded.job_id OR m.expires_at <= excluded.created_at
    RETURNING key_hash),
  sums AS MATERIALIZED (
    SELECT count(*) AS n, g.now, g.queue, g.type, g.key_hash IS NOT NULL AS keyed, ${isParked} AS parked,
      ${histogramLabelOf('g.now - g.started_at')} AS duration
    FROM gone g GROUP BY 2, 3, 4, 5, 6, 7),
  dead AS (
    INSERT INTO chokaq.jobs_dlq (${kept}, reason, in_doubt, duplicate_of, finished_at, result)
    SELECT ${columnsOf({ revision: 'g.revision + 1' })}, 'CompleteConflict', false,
      (SELECT o.job_id FROM chokaq.idempotency_markers o WHERE o.key_hash = g.key_hash), g.now, g.returned::json
    FROM gone g WHERE (SELECT bool_or(parked) FROM sums) AND ${isParked}),
  done AS (
    INSERT INTO chokaq.jobs_archive (${kept}, outcome, finished_at, expires_at, result)
    SELECT ${archived}, 'completed', g.now, g.now + g.stub, CASE WHEN g.stub IS NULL THEN g.returned::json END
    FROM gone g WHERE NOT ${isParked}),
  counted AS (
    INSERT INTO chokaq.worker_counters (at, value, name, queue, type, label)
    SELECT now, sum(n), CASE WHEN parked THEN 'jobs.dlq' ELSE 'jobs.completed' END, queue, type,
      CASE WHEN parked THEN 'CompleteConflict' ELSE '' END FROM sums GROUP BY now, queue, type, parked
    UNION ALL
    SELECT now, sum(n), 'idempotency.claims', queue, type, CASE WHEN parked THEN 'complete_conflict' ELSE 'completed' END
    FROM sums WHERE keyed GROUP BY now, queue, type, parked
    UNION ALL
    SELECT now, sum(n), 'duration', queue, type, duration FROM sums GROUP BY now, queue, type, duration),
  answer AS MATERIALIZED (
    SELECT coalesce(sum(n) FILTER (WHERE NOT parked), 0) = $7::text::bigint AS is_all_done FROM sums)
  SELECT NULL AS id, NULL::float8 AS token, 0 AS is_conflict FROM answer WHERE is_all_done
  UNION ALL
  SELECT g.id::text, g.token::float8, ${isParked}::int FROM gone g WHERE NOT (SELECT is_all_done FROM answer)`

interface CompletedRow {
  /** Null: all that was asked for is completed. */
  readonly id: string | null
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
  // In one order, so that two statements that want the same rows wait for each other and never in a circle.
  const sorted = [...completions].sort((a, b) => (a.lease.jobId < b.lease.jobId ? -1 : 1))
  const actions = sorted.map(({ action }) => action)
  const rows = await session.planned<CompletedRow>(
    completeRows,
    arrayText(sorted.map(({ lease }) => lease.jobId)),
    arrayText(sorted.map(({ lease }) => lease.token)),
    arrayText(actions.map(({ result }) => result)),
    arrayText(actions.map(({ markerLifeMs }) => Math.ceil(markerLifeMs))),
    arrayText(actions.map(({ keep }) => (keep.kind === 'stub' ? Math.ceil(keep.forMs) : null))),
    arrayText(actions.map(({ compensated }) => (compensated === true ? 'compensated' : 'completed'))),
    String(sorted.length),
  )
  if (rows[0]?.id === null) return new Map(sorted.map(({ lease }) => [leaseId(lease), 'completed']))
  return new Map(
    rows.map(({ id, token, is_conflict }) => [
      leaseId({ jobId: id ?? '', token }),
      is_conflict === 1 ? 'conflict' : 'completed',
    ]),
  )
}
