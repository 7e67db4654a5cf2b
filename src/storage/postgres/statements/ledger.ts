/**
 * The ledger of effects. Requests of one batch are applied in order in one transaction, so the outcome of one call and
 * the intent of the next share a commit.
 *
 * An intent needs the lease: the job's row is locked FOR SHARE by (id, token, processing) in the transaction that inserts
 * it, so whoever ends or takes the job waits for the intent, and sees it in the statement after its own lock. An outcome
 * needs only its own intent's id: it is evidence, whoever holds the lease. The rows of an effect are locked before one of
 * them is closed: of two calls that both report success, the second must see the first.
 */
import { unreachable } from '../../../core/errors.ts'
import { serializeFailure } from '../../../core/failure.ts'
import { leaseId } from '../../../core/lease.ts'
import { compensateName, type LedgerRef, type LedgerRequest, type LedgerVerdict } from '../../../core/ledger.ts'
import { type IntentRow, toIntent } from '../../ledger-mapping.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../transactions.ts'
import { isUuid } from './uuid.ts'

type Open = Extract<LedgerRequest, { readonly kind: 'open' }>
type Close = Extract<LedgerRequest, { readonly kind: 'close' }>
type Remember = Extract<LedgerRequest, { readonly kind: 'remember' }>

/** Returns one verdict per request, in order. Who: the owner for all but `close`; `close`: whoever made the call. */
export async function ledger(tx: Transaction, requests: readonly LedgerRequest[]): Promise<readonly LedgerVerdict[]> {
  const owned = await lockLeases(tx.session, requests)
  const verdicts: LedgerVerdict[] = []
  for (const request of requests) {
    const isLost = request.kind !== 'close' && !owned.has(leaseId(request.lease))
    verdicts.push(isLost ? { kind: 'lost' } : await apply(tx.session, request))
  }
  return verdicts
}

const shareOwned = `SELECT id::text AS id, token FROM chokaq.jobs_hot
  WHERE id = ANY($1::uuid[]) AND token = ANY($2::bigint[]) AND state = 'processing' ORDER BY id FOR SHARE`

async function lockLeases(session: Session, requests: readonly LedgerRequest[]): Promise<ReadonlySet<string>> {
  const leases = requests.flatMap((request) =>
    request.kind === 'close' || !isUuid(request.lease.jobId) ? [] : [request.lease],
  )
  if (leases.length === 0) return new Set()
  const rows = await session.all<{ readonly id: string; readonly token: number }>(
    shareOwned,
    leases.map(({ jobId }) => jobId),
    leases.map(({ token }) => token),
  )
  return new Set(rows.map(({ id, token }) => leaseId({ jobId: id, token })))
}

function apply(session: Session, request: LedgerRequest): Promise<LedgerVerdict> {
  switch (request.kind) {
    case 'close':
      return close(session, request)
    case 'open':
      return open(session, request)
    case 'names':
      return namesOf(session, request.keyRef, request.generation)
    case 'recall':
      return recall(session, request.ref)
    case 'remember':
      return remember(session, request)
    default:
      return unreachable(request, 'ledger request')
  }
}

/** With the clock of the statement that read it. */
interface TimedRow extends IntentRow {
  readonly now: number
}

const ofRef = 'key_ref = $1 AND generation = $2 AND kind = $3 AND name = $4 AND item = $5'
const selectIntents = `SELECT id::text AS id, state, fingerprint, input::text AS input, result::text AS result, failure,
    opened_at, job_id::text AS job_id, worker_id, attempt, provider_key, replayed, owner_gone,
    (SELECT chokaq.now_ms()) AS now
  FROM chokaq.effects WHERE ${ofRef} ORDER BY opened_at, id`

type RefValues = readonly [string, number, string, string, string]

function refValues(ref: LedgerRef): RefValues {
  return [ref.keyRef, ref.generation, ref.kind, ref.name, ref.item]
}

function intentsOf(session: Session, ref: LedgerRef): Promise<readonly TimedRow[]> {
  return session.all<TimedRow>(selectIntents, ...refValues(ref))
}

const insertIntent = `INSERT INTO chokaq.effects (key_ref, generation, kind, name, item, id, state, job_id, worker_id,
    attempt, token, provider, provider_key, fingerprint, opened_at, keep_ms, input)
  VALUES ($1, $2, $3, $4, $5, $6, 'open', $7, $8, $9, $10, $11, $12, $13, chokaq.now_ms(), $14, $15::text::json)`
const markAbsent = `UPDATE chokaq.effects SET state = 'not-executed', closed_at = coalesce(closed_at, chokaq.now_ms())
  WHERE id = ANY($1::uuid[]) AND state IN ('open', 'ambiguous')`

/**
 * open: (nothing) -> open
 * Precondition: lease (locked by the caller); every row of the effect is one the caller has seen.
 * Returns opened, or known with what stands there. A repeat after a lost reply finds its own row and is opened.
 */
async function open(session: Session, request: Open): Promise<LedgerVerdict> {
  const { ref, lease, id } = request
  const rows = await intentsOf(session, ref)
  const [first] = rows
  const firstAgeMs = first === undefined ? 0 : Math.max(0, first.now - first.opened_at)
  if (rows.some((row) => row.id === id)) return { kind: 'opened', firstAgeMs }
  const isSettled = rows.some((row) => row.state === 'done')
  if (isSettled || rows.some((row) => !request.seenIds.includes(row.id))) {
    return { kind: 'known', intents: rows.map((row) => toIntent(row, row.now)) }
  }
  if (request.absentIds.length > 0) await session.all(markAbsent, [...request.absentIds].sort())
  await session.all(
    insertIntent,
    ...refValues(ref),
    id,
    lease.jobId,
    request.workerId,
    request.attempt,
    lease.token,
    request.provider,
    request.providerKey,
    request.fingerprint,
    Math.ceil(request.keepMs),
    request.input,
  )
  return { kind: 'opened', firstAgeMs }
}

interface OwnRow {
  readonly kind: LedgerRef['kind']
  readonly key_ref: string
  readonly generation: number
  readonly name: string
  readonly item: string
  readonly provider_key: string | null
}

const selectOwn = `SELECT kind, key_ref, generation, name, item, provider_key FROM chokaq.effects WHERE id = $1`
const lockRef = `SELECT 1 FROM chokaq.effects WHERE ${ofRef} ORDER BY id FOR UPDATE`
// Done is final; everything else gives way to the evidence of the call itself. A review of the key is another one now:
// who decided on what it showed before has to look again.
const closeIntent = `
  WITH told AS (
    UPDATE chokaq.effects SET state = $2::text, result = $3::text::json, failure = $4, replayed = $5,
      closed_at = chokaq.now_ms()
    WHERE id = $1 AND state <> 'done' AND (state IN ('open', 'ambiguous') OR $2::text = 'done')
    RETURNING CASE WHEN key_ref NOT LIKE 'job:%' THEN decode(key_ref, 'hex') END AS key_hash, generation)
  UPDATE chokaq.jobs_dlq d SET revision = d.revision + 1 FROM told
  WHERE d.key_hash = told.key_hash AND d.generation = told.generation AND d.in_doubt`
const supersedeSiblings = `UPDATE chokaq.effects SET state = 'superseded', closed_at = coalesce(closed_at, chokaq.now_ms())
  WHERE ${ofRef} AND id <> $6 AND state IN ('open', 'ambiguous') AND ($7::boolean OR provider_key = $8::text)`
const selectOtherDone = `SELECT 1 AS found FROM chokaq.effects WHERE ${ofRef} AND id <> $6 AND state = 'done'
  AND (provider_key IS NULL OR $7::text IS NULL OR provider_key <> $7::text) LIMIT 1`

/**
 * close: open | ambiguous -> done | terminal | not-executed | ambiguous; any but done -> done, as late evidence
 * Precondition: none but the intent's own id.
 * Returns closed; `double` where another call of the effect, under another key, is done too.
 */
async function close(session: Session, request: Close): Promise<LedgerVerdict> {
  const own = await session.get<OwnRow>(selectOwn, request.id)
  // Pruned with its job, or never committed: there is nothing to close.
  if (own === undefined) return { kind: 'closed', double: false }
  const failure = request.failure === null ? null : serializeFailure(request.failure)
  const { id, state, result, supersedes } = request
  const ref = [own.key_ref, own.generation, own.kind, own.name, own.item] as const
  await session.all(lockRef, ...ref)
  await session.all(closeIntent, id, state, result, failure, request.replayed)
  if (supersedes !== 'none') await session.all(supersedeSiblings, ...ref, id, supersedes === 'all', own.provider_key)
  if (state !== 'done') return { kind: 'closed', double: false }
  const other = await session.get(selectOtherDone, ...ref, id, own.provider_key)
  return { kind: 'closed', double: other !== undefined }
}

const selectNames = `SELECT name, kind FROM chokaq.effects WHERE key_ref = $1 AND generation = $2
    AND (kind = 'effect' OR (kind = 'checkpoint' AND name = $3)) GROUP BY name, kind ORDER BY name`

async function namesOf(session: Session, keyRef: string, generation: number): Promise<LedgerVerdict> {
  const rows = await session.all<{ readonly name: string; readonly kind: LedgerRef['kind'] }>(
    selectNames,
    keyRef,
    generation,
    compensateName,
  )
  const names = rows.filter(({ kind }) => kind === 'effect').map(({ name }) => name)
  return { kind: 'names', names: names.sort(), compensate: rows.some(({ kind }) => kind === 'checkpoint') }
}

/** A memo or checkpoint; undefined where nothing is remembered. */
export async function recalled(
  session: Session,
  ref: LedgerRef,
): Promise<{ readonly id: string; readonly result: string | null } | undefined> {
  const [row] = await intentsOf(session, ref)
  return row === undefined ? undefined : { id: row.id, result: row.result }
}

async function recall(session: Session, ref: LedgerRef): Promise<LedgerVerdict> {
  const known = await recalled(session, ref)
  return { kind: 'recalled', found: known !== undefined, result: known?.result ?? null }
}

export const insertDone = `INSERT INTO chokaq.effects (key_ref, generation, kind, name, item, id, state, job_id, worker_id,
    attempt, token, provider, fingerprint, opened_at, closed_at, keep_ms, input, result)
  SELECT $1, $2::integer, $3, $4, $5, $6::uuid, 'done', $7::uuid, $8, $9::integer, $10::bigint, '', '', c.now, c.now,
    $11::bigint, 'null'::json, $12::text::json FROM (SELECT chokaq.now_ms() AS now) c
  ON CONFLICT (key_ref, generation, kind, name, item) WHERE kind IN ('memo', 'checkpoint') DO NOTHING`

/** remember: (nothing) -> done. What was remembered first stands. */
export async function remember(session: Session, request: Remember): Promise<LedgerVerdict> {
  const { ref, lease, id, workerId, attempt, keepMs, result } = request
  const values = [id, lease.jobId, workerId, attempt, lease.token, Math.ceil(keepMs), result] as const
  await session.all(insertDone, ...refValues(ref), ...values)
  return { kind: 'remembered', result: (await intentsOf(session, ref))[0]?.result ?? null }
}

// What happened twice: an effect that two calls under different keys report as done.
const selectHolds = `
  SELECT r.id::text AS id, k.is_doubtful::int AS is_doubtful, k.is_wished::int AS is_wished, EXISTS (
      SELECT FROM chokaq.effects d WHERE d.key_ref = r.key AND d.generation = r.generation
        AND d.kind IN ('effect', 'compensation') AND d.state = 'done' GROUP BY d.kind, d.name, d.item
      HAVING count(*) > 1 AND (count(d.provider_key) < count(*) OR count(DISTINCT d.provider_key) > 1))::int AS is_double
  FROM json_to_recordset($1::text::json) AS r(id uuid, key text, generation integer)
  CROSS JOIN LATERAL (SELECT
      EXISTS (SELECT FROM chokaq.effects e WHERE e.key_ref = r.key AND e.generation = r.generation
        AND e.state IN ('open', 'ambiguous')) AS is_doubtful,
      EXISTS (SELECT FROM chokaq.effects e WHERE e.key_ref = r.key AND e.generation = r.generation
        AND e.kind = 'checkpoint' AND e.name = '${compensateName}') AS is_wished) k`

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
