/** Why a row did not get in: who has its id, who has its key, and what its key left behind. */
import { sameFingerprint } from '../../../core/canonical-json.ts'
import type { CounterSum } from '../../../core/counters.ts'
import type { MarkerState } from '../../../core/inspector.ts'
import type { HotState, NewJob } from '../../../core/job.ts'
import type { EnqueueVerdict } from '../../../core/storage.ts'
import { failureOf } from '../../row-mapping.ts'
import type { Session } from '../session.ts'
import { incomingColumns, rowsOf } from './incoming-rows.ts'

interface FoundRow {
  readonly stored_type: string | null
  readonly stored_key: string | null
  readonly stored_key_computed: number | null
  readonly is_stub: number | null
  readonly same_payload: number | null
  readonly holder_id: string | null
  readonly holder_state: HotState | null
  readonly holder_fingerprint: string | null
  readonly holder_payload: string | null
  readonly marker_job: string | null
  readonly marker_state: MarkerState | null
  readonly marker_fingerprint: string | null
  readonly marker_result: string | null
  readonly marker_payload: string | null
  readonly marker_failure: string | null
}

const storedIn = (table: string): string =>
  `SELECT s.type, encode(s.key_hash, 'hex') AS key, s.key_computed, s.payload::text AS payload
    FROM chokaq.${table} s WHERE s.id = i.id`
const payloadIn = (table: string): string =>
  `SELECT p.payload::text AS payload FROM chokaq.${table} p WHERE p.id = m.job_id`

// Payloads of holders are read only where a message will show how they differ: they may be large. Booleans are written
// as integers, because the drivers of users' transactions disagree about them.
const selectHolders = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now),
  i AS MATERIALIZED (SELECT r.*, decode(r.key, 'hex') AS key_hash
    FROM json_to_recordset($1::text::json) AS r(${incomingColumns}))
  SELECT s.type AS stored_type, s.key AS stored_key, s.key_computed::int AS stored_key_computed,
    (s.type IS NOT NULL AND s.payload IS NULL)::int AS is_stub, (s.payload = i.payload)::int AS same_payload,
    h.id::text AS holder_id, h.state AS holder_state, h.fingerprint AS holder_fingerprint,
    CASE WHEN h.fingerprint IS DISTINCT FROM i.fingerprint THEN h.payload::text END AS holder_payload,
    m.job_id::text AS marker_job, m.state AS marker_state, m.fingerprint AS marker_fingerprint,
    m.result::text AS marker_result,
    CASE WHEN m.fingerprint IS DISTINCT FROM i.fingerprint THEN
      (SELECT k.payload FROM (${payloadIn('jobs_hot')} UNION ALL ${payloadIn('jobs_archive')}
        UNION ALL ${payloadIn('jobs_dlq')}) k LIMIT 1) END AS marker_payload,
    CASE WHEN m.state = 'terminal' THEN coalesce(m.failure,
      (SELECT d.failure FROM chokaq.jobs_dlq d WHERE d.id = m.job_id),
      (SELECT a.failure FROM chokaq.jobs_archive a WHERE a.id = m.job_id)) END AS marker_failure
  FROM i CROSS JOIN c
  LEFT JOIN LATERAL (SELECT * FROM (${storedIn('jobs_hot')} UNION ALL ${storedIn('jobs_archive')}
    UNION ALL ${storedIn('jobs_dlq')}) u LIMIT 1) s ON true
  LEFT JOIN LATERAL (SELECT * FROM chokaq.jobs_hot j WHERE j.key_hash = i.key_hash OFFSET 0) h ON true
  LEFT JOIN LATERAL (SELECT * FROM chokaq.idempotency_markers k
    WHERE k.key_hash = i.key_hash AND (k.expires_at IS NULL OR k.expires_at > c.now) OFFSET 0) m ON true
  ORDER BY i.n`

/** One verdict per job, in order; undefined where nothing stands in the way any more. Counts the duplicates. */
export async function findHolders(
  session: Session,
  jobs: readonly NewJob[],
  counters: CounterSum,
): Promise<readonly (EnqueueVerdict | undefined)[]> {
  const rows = await session.all<FoundRow>(selectHolders, rowsOf(jobs))
  return jobs.map((job, n) => {
    const row = rows[n]
    const verdict = row === undefined ? undefined : verdictOf(job, row)
    if (verdict !== undefined && isDuplicate(verdict)) counters.add('jobs.deduplicated', job, verdict.kind)
    return verdict
  })
}

/** A resend is no news and a reused id an error of the producer; the rest was dropped because of its key. */
function isDuplicate({ kind }: EnqueueVerdict): boolean {
  return kind !== 'resent' && kind !== 'id-reused'
}

function verdictOf(job: NewJob, row: FoundRow): EnqueueVerdict | undefined {
  const stored = storedBefore(job, row)
  if (job.mayExist && stored !== undefined) return stored
  return heldByHotRow(job, row) ?? heldByMarker(job, row) ?? stored
}

/** Whether the id is taken, and by the same job: the answer to a repeated call whose first reply was lost. */
function storedBefore(job: NewJob, row: FoundRow): EnqueueVerdict | undefined {
  if (row.stored_type === null) return undefined
  // A worker wrote the key of a raw enqueue; its producer never knew it.
  const storedKey = row.stored_key_computed === 1 && job.key === undefined ? null : row.stored_key
  const isSame = row.is_stub === 1 || (row.same_payload === 1 && storedKey === (job.key?.hash ?? null))
  return row.stored_type === job.type && isSame ? { kind: 'resent' } : { kind: 'id-reused' }
}

function heldByHotRow(job: NewJob, row: FoundRow): EnqueueVerdict | undefined {
  const { holder_id: jobId, holder_state: state } = row
  if (jobId === null || state === null) return undefined
  if (sameFingerprint(job.fingerprint, row.holder_fingerprint) === 'different') {
    return { kind: 'key-reused', jobId, holderPayload: row.holder_payload }
  }
  if (jobId === job.id) return { kind: 'resent' }
  if (row.marker_state === 'in_doubt' && row.marker_job === jobId) return { kind: 'in-review', jobId }
  return { kind: 'active', jobId, state }
}

function heldByMarker(job: NewJob, row: FoundRow): EnqueueVerdict | undefined {
  const { marker_job: jobId } = row
  if (jobId === null || row.marker_state === null) return undefined
  if (sameFingerprint(job.fingerprint, row.marker_fingerprint) === 'different') {
    return { kind: 'key-reused', jobId, holderPayload: row.marker_payload }
  }
  switch (row.marker_state) {
    case 'completed':
      return { kind: 'completed', jobId, result: row.marker_result }
    case 'in_doubt':
      return { kind: 'in-review', jobId }
    case 'terminal': {
      const failure = failureOf(row.marker_failure) ?? { name: 'Error', message: 'The failure is no longer kept.' }
      return { kind: 'failed', jobId, failure }
    }
    case 'compensated':
      return { kind: 'compensated', jobId }
  }
}
