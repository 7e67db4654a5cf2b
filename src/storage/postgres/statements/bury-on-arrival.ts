/** Jobs that are dead when they arrive: a receiver of other people's messages must keep a conflict for a person. */
import { CounterSum } from '../../../core/counters.ts'
import { appendHistory, serializeFailure } from '../../../core/failure.ts'
import type { DeadOnArrival } from '../../../core/storage.ts'
import type { Transaction } from '../transactions.ts'
import { incomingColumns, rowsOf } from './incoming-rows.ts'
import { operationOf } from './markers.ts'

// Of two senders that repeat the same conflict at once one waits here for the other; the lock ends with the transaction.
const takeTurn = `SELECT 1 AS taken FROM (
  SELECT pg_advisory_xact_lock(hashtextextended('chokaq dead ' || coalesce($1::text, $2::text), 0))) AS turn`
const selectKnown = `SELECT (SELECT chokaq.now_ms())::float8 AS now,
  (EXISTS (SELECT FROM chokaq.jobs_dlq WHERE key_hash = decode($1, 'hex') AND fingerprint IS NOT DISTINCT FROM $2) OR
  EXISTS (SELECT FROM chokaq.jobs_hot WHERE id = $3) OR EXISTS (SELECT FROM chokaq.jobs_archive WHERE id = $3) OR
  EXISTS (SELECT FROM chokaq.jobs_dlq WHERE id = $3))::int AS is_known`

const insertDead = `
  INSERT INTO chokaq.jobs_dlq (id, reason, type, queue, priority, run_at, token, generation, attempt, failure_count,
    crash_count, fetch_crash_count, revision, in_doubt, created_at, finished_at, tenant, key_hash, key_prefix, key_scope,
    key_computed, fingerprint, parent_id, duplicate_of, trace_context, tags, payload, failure, history)
  SELECT i.id, $2::text, i.type, i.queue, i.priority, greatest($6::bigint + i.wait, i.due), 0, greatest(1,
      (SELECT max(d.generation) FROM chokaq.jobs_dlq d WHERE d.key_hash = decode(i.key, 'hex')),
      (SELECT max(${operationOf}) FROM chokaq.effects e WHERE e.key_ref = i.key),
      (SELECT m.generation FROM chokaq.idempotency_markers m WHERE m.key_hash = decode(i.key, 'hex'))),
    0, 0, 0, 0, 1, false, $6::bigint, $6::bigint, i.tenant, decode(i.key, 'hex'), i.key_prefix, i.key_scope, false,
    i.fingerprint, i.parent_id, $3::uuid, i.trace_context, i.tags, i.payload::json, $4::text, $5::text
  FROM json_to_recordset($1::text::json) AS i(${incomingColumns})
  ON CONFLICT DO NOTHING RETURNING 1`

/**
 * A job that is dead on arrival: nowhere -> dlq
 * Precondition: no dead row has the same key hash and fingerprint, so that a sender who repeats himself fills one row.
 * Returns whether it was inserted.
 * Who: a receiver of other people's messages.
 */
export async function buryOnArrival(
  tx: Transaction,
  { job, reason, failure, duplicateOf }: DeadOnArrival,
): Promise<boolean> {
  const { session } = tx
  const keyHash = job.key?.hash ?? null
  await session.all(takeTurn, keyHash, job.id)
  const row = await session.get<{ readonly is_known: number; readonly now: number }>(
    selectKnown,
    keyHash,
    job.fingerprint ?? null,
    job.id,
  )
  if (row === undefined || row.is_known === 1) return false
  const history = appendHistory(null, { attempt: 0, atMs: row.now, kind: reason, failure })
  const texts = [reason, duplicateOf ?? null, serializeFailure(failure), history] as const
  if ((await session.get(insertDead, rowsOf([job]), ...texts, row.now)) === undefined) return false
  const counters = new CounterSum()
  counters.add('jobs.dlq', job, reason)
  await session.addCounters(counters)
  return true
}
