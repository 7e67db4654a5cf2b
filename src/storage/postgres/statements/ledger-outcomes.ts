/**
 * Closing intents. Every statement here may run in a transaction of the user's, through a driver of the user's: rows come
 * in as JSON text, and go out as types that every driver gives alike.
 */
import { serializeFailure } from '../../../core/failure.ts'
import type { LedgerRef, LedgerRequest } from '../../../core/ledger.ts'
import type { Session } from '../session.ts'
import { isOfEffect, type RefRow } from './ledger-intents.ts'

export type Close = Extract<LedgerRequest, { readonly kind: 'close' }>

export interface Closable {
  readonly ref: LedgerRef
  /** Somebody else has one of the effect's rows locked. */
  readonly isBusy: boolean
  /** Its intent is the only one. */
  readonly isAlone: boolean
}

// All rows of the effect are locked, not the own one alone: of two calls that both report success, the second must see
// the first. What is skipped is told by the count.
function lockText(ifLocked: '' | 'SKIP LOCKED'): string {
  return `
  WITH o AS MATERIALIZED (
    SELECT e.* FROM json_to_recordset($1::text::json) AS r(id uuid) CROSS JOIN LATERAL (
      SELECT e.id, e.key_ref, e.generation, e.kind, e.name, e.item FROM chokaq.effects e WHERE e.id = r.id OFFSET 0) e)
  SELECT o.id::text AS id, o.key_ref, o.generation, o.kind, o.name, o.item, (l.count < a.count)::int AS is_busy,
    (a.count = 1)::int AS is_alone FROM o
  CROSS JOIN LATERAL (SELECT count(*) FROM (
    SELECT FROM chokaq.effects e WHERE ${isOfEffect('o')} ORDER BY e.id FOR UPDATE ${ifLocked}) e) l
  CROSS JOIN LATERAL (SELECT count(*) FROM chokaq.effects e WHERE ${isOfEffect('o')}) a`
}
const lockEffects = lockText('')
const lockFreeEffects = lockText('SKIP LOCKED')

interface LockedRow extends RefRow {
  readonly id: string
  readonly is_busy: number
  readonly is_alone: number
}

/** Locks the effects of intents; an intent that does not exist is absent. `mayWait`: for whoever has one of them. */
export async function lockEffectsOf(
  session: Session,
  ids: readonly string[],
  mayWait: boolean,
): Promise<ReadonlyMap<string, Closable>> {
  if (ids.length === 0) return new Map()
  const incoming = JSON.stringify([...ids].sort().map((id) => ({ id })))
  const rows = await session.all<LockedRow>(mayWait ? lockEffects : lockFreeEffects, incoming)
  return new Map(
    rows.map(({ id, key_ref: keyRef, generation, kind, name, item, is_busy, is_alone }) => [
      id,
      { ref: { keyRef, generation, kind, name, item }, isBusy: is_busy === 1, isAlone: is_alone === 1 },
    ]),
  )
}

// Done is final; everything else gives way to the evidence of the call itself. A review of the key is another one now:
// who decided on what it showed before has to look again. The rows are this transaction's since the statement before, so
// they are changed where they lie.
const closeIntents = `
  WITH told AS (
    UPDATE chokaq.effects e SET state = o.became, result = o.result::json, failure = o.failure, replayed = o.replayed,
      closed_at = o.now
    FROM (SELECT r.*, p.place, (SELECT chokaq.now_ms()) AS now FROM json_to_recordset($1::text::json) AS r(id uuid,
        became text, result text, failure text, replayed boolean)
      CROSS JOIN LATERAL (SELECT e.ctid AS place FROM chokaq.effects e WHERE e.id = r.id OFFSET 0) p) o
    WHERE e.ctid = o.place AND e.id = o.id AND e.state <> 'done'
      AND (e.state IN ('open', 'ambiguous') OR o.became = 'done')
    RETURNING CASE WHEN e.key_ref NOT LIKE 'job:%' THEN decode(e.key_ref, 'hex') END AS key_hash, e.generation)
  SELECT encode(t.key_hash, 'hex') AS key, t.generation, count(*)::int AS count FROM told t
  WHERE EXISTS (SELECT FROM chokaq.jobs_dlq d
    WHERE d.key_hash = t.key_hash AND d.generation = t.generation AND d.in_doubt OFFSET 0)
  GROUP BY t.key_hash, t.generation`

const changeReviews = `
  WITH r AS MATERIALIZED (SELECT d.id, r.count FROM json_to_recordset($1::text::json) AS r(key text, generation integer,
      count integer) CROSS JOIN LATERAL (SELECT d.id FROM chokaq.jobs_dlq d
    WHERE d.key_hash = decode(r.key, 'hex') AND d.generation = r.generation AND d.in_doubt OFFSET 0) d)
  UPDATE chokaq.jobs_dlq d SET revision = d.revision + (SELECT r.count FROM r WHERE r.id = d.id)
  WHERE d.id = ANY(ARRAY(SELECT id FROM r ORDER BY id)) AND d.in_doubt`

// The siblings of an intent: those under the same provider key (or all) end with it, and one that is done under another
// key makes a double action.
const closeSiblings = `
  WITH s AS MATERIALIZED (
    SELECT r.n, r.became, r.supersedes, o.provider_key AS own_key, e.*
    FROM json_to_recordset($1::text::json) AS r(n integer, id uuid, became text, supersedes text)
    CROSS JOIN LATERAL (SELECT * FROM chokaq.effects e WHERE e.id = r.id OFFSET 0) o
    CROSS JOIN LATERAL (SELECT e.ctid AS place, e.id, e.state, e.provider_key FROM chokaq.effects e
      WHERE ${isOfEffect('o')} AND e.id <> o.id OFFSET 0) e),
  superseded AS (
    UPDATE chokaq.effects e SET state = 'superseded', closed_at = coalesce(e.closed_at, (SELECT chokaq.now_ms()))
    FROM s WHERE e.ctid = s.place AND e.id = s.id AND e.state IN ('open', 'ambiguous')
      AND (s.supersedes = 'all' OR (s.supersedes = 'same-key' AND s.provider_key = s.own_key)))
  SELECT DISTINCT n FROM s WHERE became = 'done' AND state = 'done'
    AND (provider_key IS NULL OR own_key IS NULL OR provider_key <> own_key)`

/**
 * close: open | ambiguous -> done | terminal | not-executed | ambiguous; any but done -> done, as late evidence; of its
 * siblings in doubt: open | ambiguous -> superseded
 * Precondition: the effect is locked (lockEffectsOf, an earlier statement of this transaction); nothing else but the
 * intent's own id. No two requests are of one effect.
 * Returns those whose effect another call, under another key, reports as done too.
 * Who: whoever made the call.
 */
export async function closeAll(
  session: Session,
  requests: readonly Close[],
  isAlone: (request: Close) => boolean,
): Promise<ReadonlySet<Close>> {
  if (requests.length === 0) return new Set()
  const rows = requests.map(({ id, state, result, failure, replayed }) => {
    return { id, became: state, result, failure: failure === null ? null : serializeFailure(failure), replayed }
  })
  const reviews = await session.all(closeIntents, JSON.stringify(rows))
  if (reviews.length > 0) await session.all(changeReviews, JSON.stringify(reviews))
  const together = requests.filter((request) => !isAlone(request))
  if (together.length === 0) return new Set()
  const incoming = together.map(({ id, state, supersedes }, n) => ({ n, id, became: state, supersedes }))
  const doubles = await session.all<{ readonly n: number }>(closeSiblings, JSON.stringify(incoming))
  return new Set(doubles.flatMap(({ n }) => together[n] ?? []))
}
