/** Memos and checkpoints: remembered once, and read again. */
import type { LedgerRef, LedgerRequest, LedgerVerdict } from '../../../core/ledger.ts'
import type { Session } from '../session.ts'
import { intentsOf, refColumns, refRow } from './ledger-intents.ts'

export type Recall = Extract<LedgerRequest, { readonly kind: 'recall' }>
export type Remember = Extract<LedgerRequest, { readonly kind: 'remember' }>

/** A memo or checkpoint; undefined where nothing is remembered. */
export async function recalled(
  session: Session,
  ref: LedgerRef,
): Promise<{ readonly id: string; readonly result: string | null } | undefined> {
  const row = (await intentsOf(session, [ref])).get(0)?.[0]
  return row === undefined ? undefined : { id: row.id, result: row.result }
}

export async function recallAll(session: Session, requests: readonly Recall[]): Promise<readonly LedgerVerdict[]> {
  const known = await intentsOf(
    session,
    requests.map(({ ref }) => ref),
  )
  return requests.map((_, n) => {
    const row = known.get(n)?.[0]
    return { kind: 'recalled', found: row !== undefined, result: row?.result ?? null }
  })
}

const insertDone = `
  INSERT INTO chokaq.effects (id, state, key_ref, generation, kind, name, item, job_id, worker_id, attempt, token,
    provider, fingerprint, opened_at, closed_at, keep_ms, input, result)
  SELECT r.id, 'done', r.key_ref, r.generation, r.kind, r.name, r.item, r.job, r.worker, r.attempt, r.token, '', '', c.now,
    c.now, r.keep, 'null', r.result::json
  FROM json_to_recordset($1::text::json) AS r(id uuid, ${refColumns}, job uuid, worker text, attempt integer,
    token bigint, keep bigint, result text) CROSS JOIN (SELECT chokaq.now_ms() AS now) c
  ORDER BY r.key_ref, r.generation, r.kind, r.name, r.item
  ON CONFLICT (key_ref, generation, kind, name, item) WHERE kind IN ('memo', 'checkpoint') DO NOTHING
  RETURNING id::text AS id`

/** Those that were remembered first, by their id. */
export async function leaveDone(session: Session, requests: readonly Omit<Remember, 'kind'>[]): Promise<Set<string>> {
  if (requests.length === 0) return new Set()
  const incoming = requests.map(({ ref, lease, id, workerId, attempt, keepMs, result }) => ({
    id,
    ...refRow(ref),
    job: lease.jobId,
    worker: workerId,
    attempt,
    token: lease.token,
    keep: Math.ceil(keepMs),
    result,
  }))
  const rows = await session.all<{ readonly id: string }>(insertDone, JSON.stringify(incoming))
  return new Set(rows.map(({ id }) => id))
}

/**
 * remember: (nothing) -> done
 * Precondition: lease (locked by an earlier statement of this transaction). No two requests are of one memo.
 * Returns what stands: what was remembered first.
 * Who: the owner.
 */
export async function rememberAll(session: Session, requests: readonly Remember[]): Promise<readonly LedgerVerdict[]> {
  const left = await leaveDone(session, requests)
  const others = requests.filter(({ id }) => !left.has(id))
  // In a statement of its own: what another transaction has just committed has to be seen.
  const known = await intentsOf(
    session,
    others.map(({ ref }) => ref),
  )
  const standing = new Map(others.map((request, place) => [request, known.get(place)?.[0]?.result ?? null]))
  return requests.map((request) => ({
    kind: 'remembered',
    result: standing.has(request) ? (standing.get(request) ?? null) : request.result,
  }))
}
