/** Reading the rows of effects, and opening intents. */
import {
  type Intent,
  type LedgerRef,
  type LedgerRequest,
  type LedgerVerdict,
  compensateName,
} from '../../../core/ledger.ts'
import { type IntentRow, toIntent } from '../../ledger-mapping.ts'
import type { Session } from '../session.ts'

export type Open = Extract<LedgerRequest, { readonly kind: 'open' }>
export type Names = Extract<LedgerRequest, { readonly kind: 'names' }>

/** Of a row named e, that it belongs to the effect that `of` names. Served by the index effects_ref. */
export function isOfEffect(of: string): string {
  return `e.key_ref = ${of}.key_ref AND e.generation = ${of}.generation AND e.kind = ${of}.kind AND e.name = ${of}.name
    AND e.item = ${of}.item`
}

/** The columns of an effect in rows that come in as JSON. */
export const refColumns = 'key_ref text, generation integer, kind text, name text, item text'

export interface RefRow {
  readonly key_ref: string
  readonly generation: number
  readonly kind: LedgerRef['kind']
  readonly name: string
  readonly item: string
}

export function refRow({ keyRef, generation, kind, name, item }: LedgerRef): RefRow {
  return { key_ref: keyRef, generation, kind, name, item }
}

/** With the clock of the statement that read it. */
interface TimedRow extends IntentRow {
  readonly n: number
  readonly now: number
}

// One lookup by index for each effect: OFFSET 0 keeps the planner from joining the list with the whole table.
const selectIntents = `SELECT r.n, e.*, (SELECT chokaq.now_ms()) AS now
  FROM json_to_recordset($1::text::json) AS r(n integer, ${refColumns}) CROSS JOIN LATERAL (
    SELECT e.id::text AS id, e.state, e.fingerprint, e.input::text AS input, e.result::text AS result, e.failure,
      e.opened_at, e.job_id::text AS job_id, e.worker_id, e.attempt, e.provider_key, e.replayed, e.owner_gone
    FROM chokaq.effects e WHERE ${isOfEffect('r')} ORDER BY e.opened_at, e.id OFFSET 0) e`

/** The rows of each effect, oldest first, by its place in `refs`; an effect without rows is absent. */
export async function intentsOf(
  session: Session,
  refs: readonly LedgerRef[],
): Promise<ReadonlyMap<number, readonly TimedRow[]>> {
  const byRef = new Map<number, TimedRow[]>()
  if (refs.length === 0) return byRef
  const incoming = refs.map((ref, n) => ({ n, ...refRow(ref) }))
  for (const row of await session.all<TimedRow>(selectIntents, JSON.stringify(incoming))) {
    const rows = byRef.get(row.n)
    if (rows === undefined) byRef.set(row.n, [row])
    else rows.push(row)
  }
  return byRef
}

function intentsFrom(rows: readonly TimedRow[] = []): readonly Intent[] {
  return rows.map((row) => toIntent(row, row.now))
}

/** Effects of other names: a range of the index on each side, so that the items of its own are not walked over. */
function hasNamed(than: '<' | '>'): string {
  return `EXISTS (SELECT FROM chokaq.effects e WHERE e.key_ref = k.key_ref AND e.generation = k.generation
    AND e.kind = 'effect' AND e.name ${than} k.name OFFSET 0)`
}

// What stands is read by the snapshot of this statement, which began after the lease was locked.
const openIntents = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now),
  k AS MATERIALIZED (SELECT i.*, s.* FROM json_to_recordset($1::text::json) AS i(n integer, id uuid, ${refColumns},
      job uuid, worker text, attempt integer, token bigint, provider text, provider_key text, fingerprint text,
      keep bigint, input text, seen uuid[])
    CROSS JOIN LATERAL (
      SELECT min(e.opened_at) AS first_at, coalesce(bool_or(e.id = i.id), false) AS is_own,
        coalesce(bool_or(e.state = 'done' OR e.id <> ALL (i.seen)), false) AS is_known
      FROM chokaq.effects e WHERE ${isOfEffect('i')}) s),
  opened AS (
    INSERT INTO chokaq.effects (id, state, key_ref, generation, kind, name, item, job_id, worker_id, attempt, token,
      provider, provider_key, fingerprint, opened_at, keep_ms, input)
    SELECT k.id, 'open', k.key_ref, k.generation, k.kind, k.name, k.item, k.job, k.worker, k.attempt, k.token,
      k.provider, k.provider_key, k.fingerprint, c.now, k.keep, k.input::json
    FROM k CROSS JOIN c WHERE NOT k.is_own AND NOT k.is_known ORDER BY k.id)
  SELECT k.n, k.is_own, NOT k.is_own AND k.is_known AS is_known, c.now - k.first_at AS age,
    ${hasNamed('<')} OR ${hasNamed('>')} AS has_others FROM k CROSS JOIN c`

const markAbsent = `UPDATE chokaq.effects SET state = 'not-executed', closed_at = coalesce(closed_at, chokaq.now_ms())
  WHERE id = ANY($1::uuid[]) AND state IN ('open', 'ambiguous')`

interface OpenedRow {
  readonly n: number
  readonly is_own: number
  readonly is_known: number
  readonly age: number | null
  readonly has_others: number
}

/**
 * open: (nothing) -> open; of its absent siblings: open | ambiguous -> not-executed
 * Precondition: lease (locked by an earlier statement of this transaction); every row of the effect is one the caller has
 * seen, and none of them is done. No two requests are of one effect.
 * Returns opened, or known with what stands there. A repeat after a lost reply finds its own row and is opened.
 * Who: the owner.
 */
export async function openAll(session: Session, requests: readonly Open[]): Promise<readonly LedgerVerdict[]> {
  if (requests.length === 0) return []
  const incoming = requests.map(({ ref, lease, ...request }, n) => ({
    n,
    id: request.id,
    ...refRow(ref),
    job: lease.jobId,
    worker: request.workerId,
    attempt: request.attempt,
    token: lease.token,
    provider: request.provider,
    provider_key: request.providerKey,
    fingerprint: request.fingerprint,
    keep: Math.ceil(request.keepMs),
    input: request.input,
    seen: request.seenIds,
  }))
  const verdicts: LedgerVerdict[] = requests.map(() => ({ kind: 'lost' }))
  const known: number[] = []
  const absentIds: string[] = []
  for (const row of await session.all<OpenedRow>(openIntents, JSON.stringify(incoming))) {
    verdicts[row.n] = { kind: 'opened', firstAgeMs: Math.max(0, row.age ?? 0), hasOthers: row.has_others === 1 }
    if (row.is_known === 1) known.push(row.n)
    else if (row.is_own === 0) absentIds.push(...(requests[row.n]?.absentIds ?? []))
  }
  if (absentIds.length > 0) await session.all(markAbsent, absentIds.sort())
  const standing = await intentsOf(
    session,
    known.flatMap((n) => requests[n]?.ref ?? []),
  )
  known.forEach((n, place) => (verdicts[n] = { kind: 'known', intents: intentsFrom(standing.get(place)) }))
  return verdicts
}

const selectNames = `SELECT r.n, e.name, e.kind
  FROM json_to_recordset($1::text::json) AS r(n integer, key_ref text, generation integer) CROSS JOIN LATERAL (
    SELECT DISTINCT e.name, e.kind FROM chokaq.effects e WHERE e.key_ref = r.key_ref AND e.generation = r.generation
      AND (e.kind = 'effect' OR (e.kind = 'checkpoint' AND e.name = '${compensateName}')) OFFSET 0) e`

interface NameRow {
  readonly n: number
  readonly name: string
  readonly kind: LedgerRef['kind']
}

export async function namesOf(session: Session, requests: readonly Names[]): Promise<readonly LedgerVerdict[]> {
  if (requests.length === 0) return []
  const incoming = requests.map(({ keyRef, generation }, n) => ({ n, key_ref: keyRef, generation }))
  const found = requests.map(() => ({ names: [] as string[], compensate: false }))
  for (const { n, name, kind } of await session.all<NameRow>(selectNames, JSON.stringify(incoming))) {
    const of = found[n]
    if (of === undefined) continue
    if (kind === 'checkpoint') of.compensate = true
    else of.names.push(name)
  }
  return found.map(({ names, compensate }) => ({ kind: 'names', names: names.sort(), compensate }))
}
