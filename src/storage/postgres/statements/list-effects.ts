/** The ledger as operators read it. */
import type { Doubt, ObservedEffect } from '../../../core/inspector.ts'
import type { LedgerRecord } from '../../../core/ledger.ts'
import { ledgerRecord, observedFrom, type LedgerRow, type ObservedRow } from '../../ledger-mapping.ts'
import type { Session } from '../session.ts'
import { isUuid } from './uuid.ts'

const refIn = (table: string): string =>
  `SELECT coalesce(encode(key_hash, 'hex'), 'job:' || id) AS ref FROM chokaq.${table} WHERE id = $1`
const selectKeyRef = `${refIn('jobs_hot')} UNION ALL ${refIn('jobs_dlq')} UNION ALL ${refIn('jobs_archive')}`
const ledgerColumns = `e.id::text AS id, e.kind, e.name, e.item, e.generation, e.state, e.provider, e.provider_key,
    e.job_id::text AS job_id, e.worker_id, e.attempt, e.owner_gone, e.replayed, e.input::text AS input,
    e.result::text AS result, e.failure, e.opened_at, e.closed_at`
const selectLedger = `SELECT ${ledgerColumns} FROM chokaq.effects e WHERE e.key_ref = $1 ORDER BY e.opened_at, e.id LIMIT 1000`
const selectDoubts = `SELECT d.id::text AS review_id, ${ledgerColumns}
  FROM chokaq.jobs_dlq d JOIN chokaq.effects e ON e.key_ref = coalesce(encode(d.key_hash, 'hex'), 'job:' || d.id)
    AND e.generation = d.generation AND e.state IN ('open', 'ambiguous')
  WHERE d.id = ANY($1::uuid[]) ORDER BY e.opened_at, e.id`

/** Every row of the job's key, of all its generations; empty for an unknown job. */
export async function listEffects(session: Session, jobId: string): Promise<readonly LedgerRecord[]> {
  if (!isUuid(jobId)) return []
  const ref = (await session.get<{ readonly ref: string }>(selectKeyRef, jobId))?.ref
  if (ref === undefined) return []
  return (await session.all<LedgerRow>(selectLedger, ref)).map(ledgerRecord)
}

interface DoubtRow extends LedgerRow {
  readonly review_id: string
}

export async function listDoubts(session: Session, jobIds: readonly string[]): Promise<readonly Doubt[]> {
  const rows = await session.all<DoubtRow>(selectDoubts, jobIds.filter(isUuid))
  return rows.map((row) => ({ reviewId: row.review_id, effect: ledgerRecord(row) }))
}

const call = 'job_id, key_ref, generation, name, item, state, provider_key, kind'
// Both looks are at the end of an index, however much is recorded; the type of a call stands with its job.
const selectObserved = `
  WITH recent AS MATERIALIZED (SELECT * FROM (
      (SELECT ${call} FROM chokaq.effects WHERE state NOT IN ('open', 'ambiguous') ORDER BY opened_at DESC LIMIT $1)
      UNION ALL (SELECT ${call} FROM chokaq.effects WHERE state IN ('open', 'ambiguous')
        ORDER BY key_ref, generation LIMIT $1)) e
    WHERE kind = 'effect'),
  doubled AS MATERIALIZED (SELECT key_ref, generation, name, item FROM recent WHERE state = 'done' GROUP BY 1, 2, 3, 4
    HAVING count(*) > 1 AND (count(provider_key) < count(*) OR count(DISTINCT provider_key) > 1)),
  typed AS MATERIALIZED (SELECT r.*, coalesce(
      (SELECT h.type FROM chokaq.jobs_hot h WHERE h.id = r.job_id),
      (SELECT a.type FROM chokaq.jobs_archive a WHERE a.id = r.job_id),
      (SELECT d.type FROM chokaq.jobs_dlq d WHERE d.id = r.job_id)) AS type FROM recent r)
  SELECT t.type, t.name, t.state, count(*)::float8 AS calls, count(t.provider_key)::float8 AS keyed,
    count(*) FILTER (WHERE t.state = 'done' AND d.name IS NOT NULL)::float8 AS doubled
  FROM typed t LEFT JOIN doubled d USING (key_ref, generation, name, item)
  WHERE t.type IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`

export async function observedEffects(session: Session, limit: number): Promise<readonly ObservedEffect[]> {
  return observedFrom(await session.all<ObservedRow>(selectObserved, limit))
}
