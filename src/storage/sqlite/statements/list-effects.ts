/** The ledger as operators read it. */
import type { Doubt, ObservedEffect } from '../../../core/inspector.ts'
import type { LedgerRecord } from '../../../core/ledger.ts'
import { ledgerRecord, observedFrom, type LedgerRow, type ObservedRow } from '../../ledger-mapping.ts'
import type { Session } from '../session.ts'

const selectKeyRef = `SELECT coalesce(key_hash, 'job:' || id) AS ref FROM chokaq_jobs_hot WHERE id = ?
  UNION ALL SELECT coalesce(key_hash, 'job:' || id) FROM chokaq_jobs_dlq WHERE id = ?
  UNION ALL SELECT coalesce(key_hash, 'job:' || id) FROM chokaq_jobs_archive WHERE id = ?`
const ledgerColumns = `e.id, e.kind, e.name, e.item, e.generation, e.state, e.provider, e.provider_key, e.job_id,
    e.worker_id, e.attempt, e.owner_gone, e.replayed, e.input, e.result, e.failure, e.opened_at, e.closed_at`
const selectLedger = `SELECT ${ledgerColumns} FROM chokaq_effects e WHERE e.key_ref = ? ORDER BY e.opened_at, e.id LIMIT 1000`
const selectDoubts = `SELECT d.id AS review_id, ${ledgerColumns}
  FROM chokaq_jobs_dlq d JOIN chokaq_effects e ON e.key_ref = coalesce(d.key_hash, 'job:' || d.id)
    AND e.generation = d.generation AND e.state IN ('open', 'ambiguous')
  WHERE d.id IN (SELECT value FROM json_each(?)) ORDER BY e.opened_at, e.id`

/** Every row of the job's key, of all its generations; empty for an unknown job. */
export function listEffects(session: Session, jobId: string): readonly LedgerRecord[] {
  const ref = session.get<{ readonly ref: string }>(selectKeyRef, jobId, jobId, jobId)?.ref
  if (ref === undefined) return []
  return session.all<LedgerRow>(selectLedger, ref).map(ledgerRecord)
}

interface DoubtRow extends LedgerRow {
  readonly review_id: string
}

export function listDoubts(session: Session, jobIds: readonly string[]): readonly Doubt[] {
  const rows = session.all<DoubtRow>(selectDoubts, JSON.stringify(jobIds))
  return rows.map((row) => ({ reviewId: row.review_id, effect: ledgerRecord(row) }))
}

const call = 'job_id, key_ref, generation, name, item, state, provider_key, kind'
// Both looks are at the end of an index, however much is recorded; the type of a call stands with its job.
const selectObserved = `
  WITH recent AS MATERIALIZED (SELECT * FROM (
      SELECT * FROM (SELECT ${call} FROM chokaq_effects INDEXED BY chokaq_effects_age
        WHERE state NOT IN ('open', 'ambiguous') ORDER BY opened_at DESC LIMIT ?)
      UNION ALL SELECT * FROM (SELECT ${call} FROM chokaq_effects INDEXED BY chokaq_effects_doubt
        WHERE state IN ('open', 'ambiguous') LIMIT ?))
    WHERE kind = 'effect'),
  doubled AS (SELECT key_ref, generation, name, item FROM recent WHERE state = 'done' GROUP BY 1, 2, 3, 4
    HAVING count(*) > 1 AND (count(provider_key) < count(*) OR count(DISTINCT provider_key) > 1)),
  typed AS MATERIALIZED (SELECT r.*, coalesce(
      (SELECT h.type FROM chokaq_jobs_hot h WHERE h.id = r.job_id),
      (SELECT a.type FROM chokaq_jobs_archive a WHERE a.id = r.job_id),
      (SELECT d.type FROM chokaq_jobs_dlq d WHERE d.id = r.job_id)) AS type FROM recent r)
  SELECT t.type, t.name, t.state, count(*) AS calls, count(t.provider_key) AS keyed,
    sum(t.state = 'done' AND EXISTS (SELECT 1 FROM doubled d WHERE d.key_ref = t.key_ref
      AND d.generation = t.generation AND d.name = t.name AND d.item = t.item)) AS doubled
  FROM typed t WHERE t.type IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`

export function observedEffects(session: Session, limit: number): readonly ObservedEffect[] {
  return observedFrom(session.all<ObservedRow>(selectObserved, limit, limit))
}
