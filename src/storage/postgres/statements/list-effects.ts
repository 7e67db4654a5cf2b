/** The ledger as operators read it. */
import type { IntentState, LedgerKind, LedgerRecord } from '../../../core/ledger.ts'
import { failureOf } from '../../row-mapping.ts'
import type { Session } from '../session.ts'
import { isUuid } from './uuid.ts'

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
  return (await session.all<LedgerRow>(selectLedger, ref)).map((row) => ({
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
