/** What a key leaves behind. Only the holder of the claim writes it, in the transaction that deletes its hot row. */
import { compensateName } from '../../../core/ledger.ts'
import type { MarkerState } from '../../../core/inspector.ts'
import type { HolderState } from '../../../core/storage.ts'
import type { Session } from '../session.ts'

export const holderStates: Readonly<Record<MarkerState, HolderState>> = {
  completed: 'completed',
  in_doubt: 'in-review',
  terminal: 'failed',
  compensated: 'compensated',
}

export interface Marker {
  readonly key_hash: string
  readonly state: MarkerState
  readonly job_id: string
  readonly generation: number
  readonly fingerprint: string | null
  readonly result: string | null
  readonly expires_at: number | null
  readonly is_live: number
}

const hash = /^[0-9a-f]{64}$/
const selectMarker = `SELECT encode(key_hash, 'hex') AS key_hash, state, job_id::text AS job_id, generation, fingerprint,
    result::text AS result, expires_at, (expires_at IS NULL OR expires_at > (SELECT chokaq.now_ms())) AS is_live
  FROM chokaq.idempotency_markers WHERE key_hash = decode($1, 'hex')`

export async function findMarker(session: Session, keyHash: string): Promise<Marker | undefined> {
  return hash.test(keyHash) ? session.get<Marker>(selectMarker, keyHash) : undefined
}

export async function deleteMarker(session: Session, keyHash: string): Promise<void> {
  await session.all(`DELETE FROM chokaq.idempotency_markers WHERE key_hash = decode($1, 'hex')`, keyHash)
}

// An operation that was undone is over: what comes after it is the next one, and never inherits what was taken back.
export const operationOf = `generation + (kind = 'checkpoint' AND name = '${compensateName}')::int`
const selectNewestGeneration = `SELECT greatest(0,
  (SELECT max(generation) FROM chokaq.jobs_dlq WHERE key_hash = decode($1, 'hex')),
  (SELECT max(${operationOf}) FROM chokaq.effects WHERE key_ref = $1)) AS generation`

/**
 * The newest generation that marker, dead rows or effects of a key know of; 0 where they know none. A cancelled or
 * purged job leaves nothing but its effects, and the next job of the key has to find them.
 */
export async function newestGeneration(session: Session, keyHash: string, marker: Marker | undefined): Promise<number> {
  const dead = await session.get<{ readonly generation: number }>(selectNewestGeneration, keyHash)
  return Math.max(marker?.generation ?? 0, dead?.generation ?? 0)
}

// A live marker of another job stays: it is older evidence, and the row of the job itself says what became of it.
const writeMarkers = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now)
  INSERT INTO chokaq.idempotency_markers AS m
    (key_hash, state, job_id, generation, token, created_at, expires_at, fingerprint, result, failure)
  SELECT decode(r.key, 'hex'), r.state, r.id, r.generation, r.token, c.now, c.now + r.life, r.fingerprint, r.result::json,
    r.failure
  FROM json_to_recordset($1::text::json) AS r(key text, state text, id uuid, generation integer, token bigint,
    life bigint, fingerprint text, result text, failure text), c
  ORDER BY r.key
  ON CONFLICT (key_hash) DO UPDATE SET state = excluded.state, job_id = excluded.job_id,
    generation = excluded.generation, token = excluded.token, created_at = excluded.created_at,
    expires_at = excluded.expires_at, fingerprint = excluded.fingerprint, result = excluded.result,
    failure = excluded.failure
    WHERE m.job_id = excluded.job_id OR m.expires_at <= excluded.created_at
  RETURNING encode(m.key_hash, 'hex') AS key`

export interface NewMarker {
  readonly key: string
  readonly state: MarkerState
  readonly id: string
  readonly generation: number
  readonly token: number
  readonly fingerprint: string | null
  readonly result: string | null
  readonly failure: string | null
  /** Milliseconds; null for ever, while a person has to decide. */
  readonly life: number | null
}

/** Leaves markers; the keys that have the new one now. */
export async function leaveMarkers(session: Session, markers: readonly NewMarker[]): Promise<ReadonlySet<string>> {
  if (markers.length === 0) return new Set()
  const rows = await session.all<{ readonly key: string }>(writeMarkers, JSON.stringify(markers))
  return new Set(rows.map(({ key }) => key))
}

const deleteOwnDoubts = `DELETE FROM chokaq.idempotency_markers m
  USING json_to_recordset($1::text::json) AS r(key text, id uuid)
  WHERE m.key_hash = decode(r.key, 'hex') AND m.job_id = r.id AND m.state = 'in_doubt'`

/**
 * A job that a decision sent back keeps its marker in doubt while it is hot. Where it ends with nothing in doubt, the
 * marker would hold the key for ever: no review shows it any more.
 */
export async function forgetOwnDoubts(
  session: Session,
  rows: readonly { readonly id: string; readonly key_hash: string | null }[],
): Promise<void> {
  const keys = rows.flatMap(({ id, key_hash: key }) => (key === null ? [] : [{ id, key }]))
  if (keys.length > 0) await session.all(deleteOwnDoubts, JSON.stringify(keys))
}
