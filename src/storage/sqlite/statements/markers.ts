/** What a key leaves behind. Only the holder of the claim writes it, in the transaction that deletes its hot row. */
import { failureOf } from '../../row-mapping.ts'
import type { StoredFailure } from '../../../core/failure.ts'
import { compensateName } from '../../../core/ledger.ts'
import type { MarkerState } from '../../../core/inspector.ts'
import type { HolderState } from '../../../core/storage.ts'
import type { Session } from '../session.ts'

export interface Marker {
  readonly key_hash: string
  readonly state: MarkerState
  readonly job_id: string
  readonly generation: number
  readonly fingerprint: string | null
  readonly result: string | null
  readonly failure: string | null
  readonly expires_at: number | null
}

const selectMarker = `SELECT key_hash, state, job_id, generation, fingerprint, result, failure, expires_at
  FROM chokaq_idempotency_markers WHERE key_hash = ?`

export function findMarker(session: Session, keyHash: string): Marker | undefined {
  return session.get<Marker>(selectMarker, keyHash)
}

export function isLive(marker: Marker, nowMs: number): boolean {
  return marker.expires_at === null || marker.expires_at > nowMs
}

export function findLiveMarker(session: Session, keyHash: string, nowMs: number): Marker | undefined {
  const marker = findMarker(session, keyHash)
  return marker !== undefined && isLive(marker, nowMs) ? marker : undefined
}

const holderStates: Readonly<Record<MarkerState, HolderState>> = {
  completed: 'completed',
  in_doubt: 'in-review',
  terminal: 'failed',
  compensated: 'compensated',
}

export function holderStateOf(marker: Marker): HolderState {
  return holderStates[marker.state]
}

export interface NewMarker {
  readonly keyHash: string
  readonly state: MarkerState
  readonly jobId: string
  readonly generation: number
  readonly token: number
  readonly fingerprint: string | null
  readonly result: string | null
  /** How the job of a terminal marker failed, serialized. */
  readonly failure?: string | null
  readonly expiresAtMs: number | null
}

const upsertMarker = `INSERT INTO chokaq_idempotency_markers
    (key_hash, state, job_id, generation, token, created_at, expires_at, fingerprint, result, failure)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (key_hash) DO UPDATE SET state = excluded.state, job_id = excluded.job_id,
    generation = excluded.generation, token = excluded.token, created_at = excluded.created_at,
    expires_at = excluded.expires_at, fingerprint = excluded.fingerprint, result = excluded.result, failure = excluded.failure`

/** Replaces what stands there: the caller has seen that nothing does, or something expired, or its own. */
export function writeMarker(session: Session, marker: NewMarker, nowMs: number): void {
  session.run(
    upsertMarker,
    marker.keyHash,
    marker.state,
    marker.jobId,
    marker.generation,
    marker.token,
    nowMs,
    marker.expiresAtMs,
    marker.fingerprint,
    marker.result,
    marker.failure ?? null,
  )
}

export function deleteMarker(session: Session, keyHash: string): boolean {
  return session.run('DELETE FROM chokaq_idempotency_markers WHERE key_hash = ?', keyHash) > 0
}

const selectNewestDead = `SELECT max(generation) AS generation FROM chokaq_jobs_dlq WHERE key_hash = ?`
// An operation that was undone is over: what comes after it is the next one, and never inherits what was taken back.
const selectNewestEffect = `SELECT max(generation + (kind = 'checkpoint' AND name = '${compensateName}')) AS generation
  FROM chokaq_effects WHERE key_ref = ?`

/**
 * The newest generation that marker, dead rows or effects of a key know of; 0 where they know none. A cancelled or
 * purged job leaves nothing but its effects, and the next job of the key has to find them.
 */
export function newestGeneration(session: Session, keyHash: string, marker: Marker | undefined): number {
  const dead = session.get<{ readonly generation: number | null }>(selectNewestDead, keyHash)
  const acted = session.get<{ readonly generation: number | null }>(selectNewestEffect, keyHash)
  return Math.max(marker?.generation ?? 0, dead?.generation ?? 0, acted?.generation ?? 0)
}

const selectKeptPayload = `SELECT payload FROM chokaq_jobs_hot WHERE id = ?
  UNION ALL SELECT payload FROM chokaq_jobs_archive WHERE id = ?
  UNION ALL SELECT payload FROM chokaq_jobs_dlq WHERE id = ?`

/** The payload of a job wherever it is; null where it is no longer kept. */
export function keptPayload(session: Session, jobId: string): string | null {
  return session.get<{ readonly payload: string | null }>(selectKeptPayload, jobId, jobId, jobId)?.payload ?? null
}

const selectKeptFailure = `SELECT failure FROM chokaq_jobs_dlq WHERE id = ?
  UNION ALL SELECT failure FROM chokaq_jobs_archive WHERE id = ?`

/** How the job of a terminal marker failed. */
export function markedFailure(session: Session, marker: Marker): StoredFailure {
  const kept =
    marker.failure ??
    session.get<{ readonly failure: string | null }>(selectKeptFailure, marker.job_id, marker.job_id)?.failure ??
    null
  return failureOf(kept) ?? { name: 'Error', message: 'The failure is no longer kept.' }
}
