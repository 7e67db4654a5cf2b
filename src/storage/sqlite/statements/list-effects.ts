/** The ledger as operators read it. */
import type { LedgerRecord } from '../../../core/ledger.ts'
import { ledgerRecord, type LedgerRow } from '../../ledger-mapping.ts'
import type { Session } from '../session.ts'

const selectKeyRef = `SELECT coalesce(key_hash, 'job:' || id) AS ref FROM chokaq_jobs_hot WHERE id = ?
  UNION ALL SELECT coalesce(key_hash, 'job:' || id) FROM chokaq_jobs_dlq WHERE id = ?
  UNION ALL SELECT coalesce(key_hash, 'job:' || id) FROM chokaq_jobs_archive WHERE id = ?`
const selectLedger = `SELECT id, kind, name, item, generation, state, provider, provider_key, job_id, worker_id, attempt,
    owner_gone, replayed, input, result, failure, opened_at, closed_at
  FROM chokaq_effects WHERE key_ref = ? ORDER BY opened_at, id LIMIT 1000`

/** Every row of the job's key, of all its generations; empty for an unknown job. */
export function listEffects(session: Session, jobId: string): readonly LedgerRecord[] {
  const ref = session.get<{ readonly ref: string }>(selectKeyRef, jobId, jobId, jobId)?.ref
  if (ref === undefined) return []
  return session.all<LedgerRow>(selectLedger, ref).map(ledgerRecord)
}
