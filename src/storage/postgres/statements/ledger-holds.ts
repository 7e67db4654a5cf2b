/** What the ledger means to the rest of a job's life: what bars its end, whose calls are over, and what is kept. */
import { leaseId } from '../../../core/lease.ts'
import { compensateName } from '../../../core/ledger.ts'
import type { Session } from '../session.ts'

// An effect that two calls under different keys report as done.
function happenedTwice(key: string, generation: string): string {
  return `EXISTS (SELECT FROM chokaq.effects d WHERE d.key_ref = ${key} AND d.generation = ${generation}
    AND d.kind IN ('effect', 'compensation') AND d.state = 'done' GROUP BY d.kind, d.name, d.item
    HAVING count(*) > 1 AND (count(d.provider_key) < count(*) OR count(DISTINCT d.provider_key) > 1))`
}

function isInDoubt(key: string, generation: string): string {
  return `EXISTS (SELECT FROM chokaq.effects e WHERE e.key_ref = ${key} AND e.generation = ${generation}
    AND e.state IN ('open', 'ambiguous'))`
}

const selectHolds = `
  SELECT r.id::text AS id, ${isInDoubt('r.key', 'r.generation')}::int AS is_doubtful,
    EXISTS (SELECT FROM chokaq.effects e WHERE e.key_ref = r.key AND e.generation = r.generation
      AND e.kind = 'checkpoint' AND e.name = '${compensateName}')::int AS is_wished,
    ${happenedTwice('r.key', 'r.generation')}::int AS is_double
  FROM json_to_recordset($1::text::json) AS r(id uuid, key text, generation integer)`

// One look at the rows of a key tells nearly always that nothing bars it; only where several calls are done is it worth
// to sort out whether they are of one effect.
const selectBarred = `
  WITH i AS MATERIALIZED (SELECT r.id, r.token FROM json_to_recordset($1::text::json) AS r(id uuid, token bigint)),
  h AS MATERIALIZED (SELECT h.id, h.token, encode(h.key_hash, 'hex') AS key, h.generation FROM chokaq.jobs_hot h
    WHERE h.id = ANY(ARRAY(SELECT id FROM i)) AND h.token = ANY(ARRAY(SELECT token FROM i))
      AND h.key_hash IS NOT NULL AND h.state = 'processing')
  SELECT h.id::text AS id, h.token::float8 AS token FROM h CROSS JOIN LATERAL (
    SELECT bool_or(e.state IN ('open', 'ambiguous')) AS is_doubtful, count(*) FILTER (WHERE e.state = 'done') AS done
    FROM chokaq.effects e WHERE e.key_ref = h.key AND e.generation = h.generation) s
  WHERE s.is_doubtful OR CASE WHEN s.done > 1 THEN ${happenedTwice('h.key', 'h.generation')} END`

/**
 * Leases whose jobs may not complete: an effect of theirs is in doubt, or happened twice. `leases` as JSON. Called after
 * the rows were locked, in a statement of its own: an intent that was just committed has to be seen.
 */
export async function barredOf(session: Session, leases: string): Promise<ReadonlySet<string>> {
  const rows = await session.all<{ readonly id: string; readonly token: number }>(selectBarred, leases)
  return new Set(rows.map(({ id, token }) => leaseId({ jobId: id, token })))
}

interface KeyedRow {
  readonly id: string
  readonly key_hash: string | null
  readonly generation: number
}

/** What the ledger has against the end of a job. */
export interface Holds {
  /**
   * Its key may not be free while it ends without success: an effect is in doubt, or a person asked to undo what is done
   * and it is not undone yet.
   */
  readonly holdsKey: boolean
  /** It may not complete: an effect is in doubt, or happened twice. */
  readonly bars: boolean
}

export const noHolds: Holds = { holdsKey: false, bars: false }

interface HoldsRow {
  readonly id: string
  readonly is_doubtful: number
  readonly is_wished: number
  readonly is_double: number
}

/**
 * What stands under the keys and generations of jobs, by the job's id. Called after their rows were locked, in a
 * statement of its own: an intent that was just committed has to be seen.
 */
export async function holdsOf(session: Session, rows: readonly KeyedRow[]): Promise<ReadonlyMap<string, Holds>> {
  const keys = rows.flatMap(({ id, key_hash, generation }) =>
    key_hash === null ? [] : [{ id, key: key_hash, generation }],
  )
  if (keys.length === 0) return new Map()
  const found = await session.all<HoldsRow>(selectHolds, JSON.stringify(keys))
  return new Map(
    found.map(({ id, is_doubtful, is_wished, is_double }) => [
      id,
      { holdsKey: is_doubtful === 1 || is_wished === 1, bars: is_doubtful === 1 || is_double === 1 },
    ]),
  )
}

const markOwnerGone = `UPDATE chokaq.effects SET owner_gone = true WHERE id IN (SELECT e.id FROM chokaq.effects e
  WHERE e.worker_id = ANY($1::text[]) AND e.state = 'open' AND NOT e.owner_gone ORDER BY e.id FOR UPDATE)`

/** The workers' processes are certainly gone: no late call of theirs can still arrive. Who: rescue. */
export async function proveOwnersGone(session: Session, workerIds: readonly string[]): Promise<void> {
  if (workerIds.length > 0) await session.all(markOwnerGone, workerIds)
}

// A key reference is a hash or a job's id, and is looked up as what it is.
const pruneEffects = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now),
  old AS MATERIALIZED (SELECT e.id, e.key_ref,
      CASE WHEN e.key_ref NOT LIKE 'job:%' THEN decode(e.key_ref, 'hex') END AS key_hash,
      CASE WHEN e.key_ref LIKE 'job:%' THEN substr(e.key_ref, 5)::uuid END AS job
    FROM chokaq.effects e, c WHERE e.state NOT IN ('open', 'ambiguous') AND e.opened_at <= (SELECT now FROM c)
      AND e.opened_at + e.keep_ms <= c.now ORDER BY e.opened_at LIMIT $2),
  free AS MATERIALIZED (SELECT o.id FROM old o, c
    WHERE NOT EXISTS (SELECT FROM chokaq.jobs_hot h WHERE h.key_hash = o.key_hash OFFSET 0)
      AND NOT EXISTS (SELECT FROM chokaq.jobs_hot h WHERE h.id = o.job OFFSET 0)
      AND NOT EXISTS (SELECT FROM chokaq.jobs_dlq d WHERE d.key_hash = o.key_hash OFFSET 0)
      AND NOT EXISTS (SELECT FROM chokaq.jobs_dlq d WHERE d.id = o.job OFFSET 0)
      AND NOT EXISTS (SELECT FROM chokaq.idempotency_markers m WHERE m.key_hash = o.key_hash OFFSET 0)
      AND NOT EXISTS (SELECT FROM chokaq.effects x WHERE x.key_ref = o.key_ref
        AND (x.state IN ('open', 'ambiguous') OR x.opened_at + x.keep_ms > c.now) OFFSET 0)
    LIMIT $1)
  DELETE FROM chokaq.effects e WHERE e.id IN (SELECT f.id FROM chokaq.effects f WHERE f.id IN (SELECT id FROM free)
    ORDER BY f.id FOR UPDATE SKIP LOCKED) RETURNING 1`
/** Rows that one pass may look at: what a key still holds is passed over again and again. */
const lookedAtPerPruned = 20

/** Rows whose key nobody holds and whose time since the key's last intent is over. Open ones never expire. */
export async function pruneLedger(session: Session, limit: number): Promise<number> {
  return (await session.all(pruneEffects, limit, limit * lookedAtPerPruned)).length
}
