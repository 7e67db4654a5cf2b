/** The ledger as operators read it. */
import type { LedgerRecord } from '../../../core/ledger.ts'
import { ledgerRecord, type LedgerRow } from '../../ledger-mapping.ts'
import type { Session } from '../session.ts'
import { isUuid } from './uuid.ts'

const refIn = (table: string): string =>
  `SELECT coalesce(encode(key_hash, 'hex'), 'job:' || id) AS ref FROM chokaq.${table} WHERE id = $1`
const selectKeyRef = `${refIn('jobs_hot')} UNION ALL ${refIn('jobs_dlq')} UNION ALL ${refIn('jobs_archive')}`
const selectLedger = `SELECT id::text AS id, kind, name, item, generation, state, provider, provider_key,
    job_id::text AS job_id, worker_id, attempt, owner_gone, replayed, input::text AS input, result::text AS result,
    failure, opened_at, closed_at
  FROM chokaq.effects WHERE key_ref = $1 ORDER BY opened_at, id LIMIT 1000`

/** Every row of the job's key, of all its generations; empty for an unknown job. */
export async function listEffects(session: Session, jobId: string): Promise<readonly LedgerRecord[]> {
  if (!isUuid(jobId)) return []
  const ref = (await session.get<{ readonly ref: string }>(selectKeyRef, jobId))?.ref
  if (ref === undefined) return []
  return (await session.all<LedgerRow>(selectLedger, ref)).map(ledgerRecord)
}
