/** The ledger as operators read it. */
import type { IntentState, LedgerKind, LedgerRecord } from '../../../core/ledger.ts'
import { failureOf } from '../../row-mapping.ts'
import type { Session } from '../session.ts'

interface LedgerRow {
  readonly id: string
  readonly kind: LedgerKind
  readonly name: string
  readonly item: string
  readonly generation: number
  readonly state: IntentState
  readonly provider: string
  readonly provider_key: string | null
  readonly job_id: string
  readonly worker_id: string
  readonly attempt: number
  readonly owner_gone: number
  readonly replayed: number
  readonly input: string
  readonly result: string | null
  readonly failure: string | null
  readonly opened_at: number
  readonly closed_at: number | null
}

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
  return session.all<LedgerRow>(selectLedger, ref).map((row) => ({
    id: row.id,
    kind: row.kind,
    name: row.name,
    item: row.item,
    generation: row.generation,
    state: row.state,
    provider: row.provider,
    providerKey: row.provider_key,
    jobId: row.job_id,
    workerId: row.worker_id,
    attempt: row.attempt,
    ownerGone: row.owner_gone === 1,
    replayed: row.replayed === 1,
    input: row.input,
    result: row.result,
    failure: failureOf(row.failure),
    openedAtMs: row.opened_at,
    closedAtMs: row.closed_at,
  }))
}
