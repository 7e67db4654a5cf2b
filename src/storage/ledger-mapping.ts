/** From rows of the ledger to the types of the port, for every database whose rows have the columns of the migrations. */
import type { ObservedEffect } from '../core/inspector.ts'
import type { Intent, IntentState, LedgerKind, LedgerRecord } from '../core/ledger.ts'
import { failureOf } from './row-mapping.ts'

export interface IntentRow {
  readonly id: string
  readonly state: IntentState
  readonly fingerprint: string
  readonly input: string
  readonly result: string | null
  readonly failure: string | null
  readonly opened_at: number
  readonly job_id: string
  readonly worker_id: string
  readonly attempt: number
  readonly provider_key: string | null
  readonly replayed: number
  readonly owner_gone: number
}

export function toIntent(row: IntentRow, nowMs: number): Intent {
  return {
    id: row.id,
    state: row.state,
    fingerprint: row.fingerprint,
    input: row.input,
    result: row.result,
    failure: failureOf(row.failure),
    ageMs: Math.max(0, nowMs - row.opened_at),
    jobId: row.job_id,
    workerId: row.worker_id,
    attempt: row.attempt,
    providerKey: row.provider_key,
    replayed: row.replayed === 1,
    ownerGone: row.owner_gone === 1,
  }
}

export interface LedgerRow {
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

export function ledgerRecord(row: LedgerRow): LedgerRecord {
  return {
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
  }
}

/** Calls of one effect that ended alike. */
export interface ObservedRow {
  readonly type: string
  readonly name: string
  readonly state: IntentState
  readonly calls: number
  readonly keyed: number
  readonly doubled: number
}

/** Rows sorted by type and name. */
export function observedFrom(rows: readonly ObservedRow[]): readonly ObservedEffect[] {
  const found: ObservedEffect[] = []
  for (const { type, name, state, calls, keyed, doubled } of rows) {
    const last = found.at(-1)
    const isSame = last?.type === type && last.effect === name
    const before = isSame ? last : { callCount: 0, outcomes: {}, keyedCount: 0, doubledCount: 0 }
    const seen = {
      type,
      effect: name,
      callCount: before.callCount + calls,
      outcomes: { ...before.outcomes, [state]: calls },
      keyedCount: before.keyedCount + keyed,
      doubledCount: before.doubledCount + doubled,
    }
    found.splice(isSame ? -1 : found.length, isSame ? 1 : 0, seen)
  }
  return found
}
