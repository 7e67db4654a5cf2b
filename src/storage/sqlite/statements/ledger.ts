/**
 * The ledger of effects. Requests of one batch are applied in order in one transaction, so the outcome of one call and
 * the intent of the next share a write.
 *
 * An intent needs the lease: the job's row is read by (id, token, processing) in the transaction that inserts it. With a
 * single writer that is the lock. An outcome needs only its own intent's id: it is evidence, whoever holds the lease.
 */
import { CounterSum } from '../../../core/counters.ts'
import { unreachable } from '../../../core/errors.ts'
import { serializeFailure } from '../../../core/failure.ts'
import type { Lease } from '../../../core/lease.ts'
import {
  compensateName,
  type IntentState,
  type LedgerRef,
  type LedgerRequest,
  type LedgerVerdict,
} from '../../../core/ledger.ts'
import { type IntentRow, toIntent } from '../../ledger-mapping.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../write-transaction.ts'

type Open = Extract<LedgerRequest, { readonly kind: 'open' }>
type Close = Extract<LedgerRequest, { readonly kind: 'close' }>
type Remember = Extract<LedgerRequest, { readonly kind: 'remember' }>

/** Returns one verdict per request, in order. Who: the owner for all but `close`; `close`: whoever made the call. */
export function ledger(tx: Transaction, requests: readonly LedgerRequest[]): readonly LedgerVerdict[] {
  const counters = new CounterSum()
  return requests.map((request) =>
    tx.row<LedgerVerdict>(
      counters,
      () => apply(tx, request),
      (error) => ({ kind: 'refused', error }),
    ),
  )
}

function apply(tx: Transaction, request: LedgerRequest): LedgerVerdict {
  switch (request.kind) {
    case 'close':
      return close(tx, request)
    case 'open':
      return isOwned(tx.session, request.lease) ? open(tx, request) : { kind: 'lost' }
    case 'names':
      return isOwned(tx.session, request.lease)
        ? namesOf(tx.session, request.keyRef, request.generation)
        : { kind: 'lost' }
    case 'recall':
      return isOwned(tx.session, request.lease) ? recall(tx.session, request.ref) : { kind: 'lost' }
    case 'remember':
      return isOwned(tx.session, request.lease) ? remember(tx, request) : { kind: 'lost' }
    default:
      return unreachable(request, 'ledger request')
  }
}

const selectOwned = `SELECT 1 AS owned FROM chokaq_jobs_hot WHERE id = ? AND token = ? AND state = 'processing'`

export function isOwned(session: Session, { jobId, token }: Lease): boolean {
  return session.get(selectOwned, jobId, token) !== undefined
}

const selectIntents = `SELECT id, state, fingerprint, input, result, failure, opened_at, job_id, worker_id, attempt,
    provider_key, replayed, owner_gone
  FROM chokaq_effects WHERE key_ref = ? AND generation = ? AND kind = ? AND name = ? AND item = ?
  ORDER BY opened_at, id`

function intentsOf(session: Session, ref: LedgerRef): readonly IntentRow[] {
  return session.all<IntentRow>(selectIntents, ref.keyRef, ref.generation, ref.kind, ref.name, ref.item)
}

const insertIntent = `INSERT INTO chokaq_effects (id, kind, key_ref, generation, name, item, state, job_id, worker_id,
    attempt, token, owner_gone, replayed, provider, provider_key, fingerprint, opened_at, keep_ms, input)
  VALUES (?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?, 0, 0, ?, ?, ?, ?, ?, ?)`
// Two ranges of the index, so that the items of the effect itself are not walked over.
const selectOthers = `SELECT EXISTS (SELECT 1 FROM chokaq_effects
    WHERE key_ref = ? AND generation = ? AND kind = 'effect' AND name < ?)
  OR EXISTS (SELECT 1 FROM chokaq_effects
    WHERE key_ref = ? AND generation = ? AND kind = 'effect' AND name > ?) AS found`
const markAbsent = `UPDATE chokaq_effects SET state = 'not-executed', closed_at = coalesce(closed_at, ?)
  WHERE id = ? AND state IN ('open', 'ambiguous')`

/**
 * open: (nothing) -> open
 * Precondition: lease (checked by the caller); every row of the effect is one the caller has seen.
 * Returns opened, or known with what stands there. A repeat after a lost reply finds its own row and is opened.
 */
function open(tx: Transaction, request: Open): LedgerVerdict {
  const { session, nowMs } = tx
  const { ref, lease, id } = request
  const rows = intentsOf(session, ref)
  const firstAgeMs = rows.length === 0 ? 0 : Math.max(0, nowMs - (rows[0] as IntentRow).opened_at)
  const opened = { kind: 'opened', firstAgeMs, hasOthers: hasOthers(session, ref) } as const
  if (rows.some((row) => row.id === id)) return opened
  const settled = rows.some((row) => row.state === 'done')
  if (settled || rows.some((row) => !request.seenIds.includes(row.id))) {
    return { kind: 'known', intents: rows.map((row) => toIntent(row, nowMs)) }
  }
  for (const absentId of request.absentIds) session.run(markAbsent, nowMs, absentId)
  session.run(
    insertIntent,
    id,
    ref.kind,
    ref.keyRef,
    ref.generation,
    ref.name,
    ref.item,
    lease.jobId,
    request.workerId,
    request.attempt,
    lease.token,
    request.provider,
    request.providerKey,
    request.fingerprint,
    nowMs,
    Math.ceil(request.keepMs),
    request.input,
  )
  return opened
}

function hasOthers(session: Session, { keyRef, generation, name }: LedgerRef): boolean {
  const of = [keyRef, generation, name] as const
  return session.get<{ readonly found: number }>(selectOthers, ...of, ...of)?.found === 1
}

interface OwnRow extends LedgerRefRow {
  readonly state: IntentState
  readonly provider_key: string | null
  readonly has_siblings: number
  readonly has_review: number
}

interface LedgerRefRow {
  readonly kind: LedgerRef['kind']
  readonly key_ref: string
  readonly generation: number
  readonly name: string
  readonly item: string
}

// With what there is to see to beside it, which is nearly always nothing: two lookups cost less than updates of no row.
const selectOwn = `SELECT o.kind, o.key_ref, o.generation, o.name, o.item, o.state, o.provider_key,
    EXISTS (SELECT 1 FROM chokaq_effects e WHERE e.key_ref = o.key_ref AND e.generation = o.generation
      AND e.kind = o.kind AND e.name = o.name AND e.item = o.item AND e.id <> o.id) AS has_siblings,
    EXISTS (SELECT 1 FROM chokaq_jobs_dlq d
      WHERE d.key_hash = o.key_ref AND d.generation = o.generation AND d.in_doubt = 1) AS has_review
  FROM chokaq_effects o WHERE o.id = ?`
// Done is final; everything else gives way to the evidence of the call itself.
const closeIntent = `UPDATE chokaq_effects SET state = ?, result = ?, failure = ?, replayed = ?, closed_at = ?
  WHERE id = ? AND state <> 'done' AND (state IN ('open', 'ambiguous') OR ? = 'done')`
// A review of the key is another one now: who decided on what it showed before has to look again.
const changeReview = `UPDATE chokaq_jobs_dlq SET revision = revision + 1
  WHERE key_hash = ? AND generation = ? AND in_doubt = 1`
const supersedeSiblings = `UPDATE chokaq_effects SET state = 'superseded', closed_at = coalesce(closed_at, ?)
  WHERE key_ref = ? AND generation = ? AND kind = ? AND name = ? AND item = ? AND id <> ?
    AND state IN ('open', 'ambiguous') AND (? = 'all' OR provider_key = ?)`
const selectOtherDone = `SELECT 1 AS found FROM chokaq_effects
  WHERE key_ref = ? AND generation = ? AND kind = ? AND name = ? AND item = ? AND id <> ? AND state = 'done'
    AND (provider_key IS NULL OR ? IS NULL OR provider_key <> ?) LIMIT 1`

/**
 * close: open | ambiguous -> done | terminal | not-executed | ambiguous; any but done -> done, as late evidence
 * Precondition: none but the intent's own id.
 * Returns closed; `double` where another call of the effect, under another key, is done too.
 */
function close({ session, nowMs }: Transaction, request: Close): LedgerVerdict {
  const own = session.get<OwnRow>(selectOwn, request.id)
  // Pruned with its job, or never committed: there is nothing to close.
  if (own === undefined) return { kind: 'closed', double: false }
  const failure = request.failure === null ? null : serializeFailure(request.failure)
  const { id, state, result, supersedes } = request
  const closedCount = session.run(closeIntent, state, result, failure, request.replayed ? 1 : 0, nowMs, id, state)
  if (closedCount > 0 && own.has_review === 1) session.run(changeReview, own.key_ref, own.generation)
  if (own.has_siblings === 0) return { kind: 'closed', double: false }
  const ref = [own.key_ref, own.generation, own.kind, own.name, own.item] as const
  if (supersedes !== 'none') session.run(supersedeSiblings, nowMs, ...ref, id, supersedes, own.provider_key)
  if (state !== 'done') return { kind: 'closed', double: false }
  return {
    kind: 'closed',
    double: session.get(selectOtherDone, ...ref, id, own.provider_key, own.provider_key) !== undefined,
  }
}

const selectNames = `SELECT DISTINCT name FROM chokaq_effects
  WHERE key_ref = ? AND generation = ? AND kind = 'effect' ORDER BY name`

const selectCompensate = `SELECT 1 AS asked FROM chokaq_effects
  WHERE key_ref = ? AND generation = ? AND kind = 'checkpoint' AND name = '${compensateName}'`

function namesOf(session: Session, keyRef: string, generation: number): LedgerVerdict {
  const names = session.all<{ readonly name: string }>(selectNames, keyRef, generation).map(({ name }) => name)
  return { kind: 'names', names, compensate: session.get(selectCompensate, keyRef, generation) !== undefined }
}

/** A memo or checkpoint; undefined where nothing is remembered. */
export function recalled(session: Session, ref: LedgerRef): { readonly result: string | null } | undefined {
  const row = intentsOf(session, ref)[0]
  return row === undefined ? undefined : { result: row.result }
}

function recall(session: Session, ref: LedgerRef): LedgerVerdict {
  const known = recalled(session, ref)
  return { kind: 'recalled', found: known !== undefined, result: known?.result ?? null }
}

const insertMemo = `INSERT INTO chokaq_effects (id, kind, key_ref, generation, name, item, state, job_id, worker_id,
    attempt, token, owner_gone, replayed, provider, fingerprint, opened_at, closed_at, keep_ms, input, result)
  VALUES (?, ?, ?, ?, ?, ?, 'done', ?, ?, ?, ?, 0, 0, '', '', ?, ?, ?, 'null', ?)
  ON CONFLICT (key_ref, generation, kind, name, item) WHERE kind IN ('memo', 'checkpoint') DO NOTHING`

/** remember: (nothing) -> done. What was remembered first stands. */
export function remember({ session, nowMs }: Transaction, request: Remember): LedgerVerdict {
  const { ref, lease } = request
  session.run(
    insertMemo,
    request.id,
    ref.kind,
    ref.keyRef,
    ref.generation,
    ref.name,
    ref.item,
    lease.jobId,
    request.workerId,
    request.attempt,
    lease.token,
    nowMs,
    nowMs,
    Math.ceil(request.keepMs),
    request.result,
  )
  return { kind: 'remembered', result: intentsOf(session, ref)[0]?.result ?? null }
}

const selectDoubt = `SELECT 1 AS found FROM chokaq_effects
  WHERE key_ref = ? AND generation = ? AND state IN ('open', 'ambiguous') LIMIT 1`

/** Whether anything of a key and generation is in doubt: then its job neither completes nor leaves without a marker. */
export function hasDoubt(session: Session, keyHash: string | null, generation: number): boolean {
  return keyHash !== null && session.get(selectDoubt, keyHash, generation) !== undefined
}

const selectDouble = `SELECT 1 AS found FROM chokaq_effects
  WHERE key_ref = ? AND generation = ? AND kind IN ('effect', 'compensation') AND state = 'done'
  GROUP BY kind, name, item
  HAVING count(*) > 1 AND (count(provider_key) < count(*) OR count(DISTINCT provider_key) > 1) LIMIT 1`

/** Whether an effect of a key and generation happened twice: a late outcome came after another call's. */
export function hasDouble(session: Session, keyHash: string | null, generation: number): boolean {
  return keyHash !== null && session.get(selectDouble, keyHash, generation) !== undefined
}

/**
 * Whether a key may not be free while its job ends without success: an effect is in doubt, or a person asked to undo
 * what is done and it is not undone yet.
 */
export function holdsKey(session: Session, keyHash: string | null, generation: number): boolean {
  if (keyHash === null) return false
  return hasDoubt(session, keyHash, generation) || session.get(selectCompensate, keyHash, generation) !== undefined
}

const markOwnerGone = `UPDATE chokaq_effects SET owner_gone = 1 WHERE worker_id = ? AND state = 'open'`

/** The worker's process is certainly gone: no late call of it can still arrive. Who: rescue. */
export function proveOwnerGone(session: Session, workerId: string): void {
  session.run(markOwnerGone, workerId)
}

const pruneEffects = `DELETE FROM chokaq_effects WHERE id IN (
  SELECT e.id FROM chokaq_effects e WHERE e.state NOT IN ('open', 'ambiguous') AND e.opened_at + e.keep_ms <= ?
    AND NOT EXISTS (SELECT 1 FROM chokaq_jobs_hot h WHERE h.key_hash = e.key_ref)
    AND NOT EXISTS (SELECT 1 FROM chokaq_jobs_hot h WHERE h.id = substr(e.key_ref, 5))
    AND NOT EXISTS (SELECT 1 FROM chokaq_jobs_dlq d WHERE d.key_hash = e.key_ref)
    AND NOT EXISTS (SELECT 1 FROM chokaq_jobs_dlq d WHERE d.id = substr(e.key_ref, 5))
    AND NOT EXISTS (SELECT 1 FROM chokaq_idempotency_markers m WHERE m.key_hash = e.key_ref)
    AND NOT EXISTS (SELECT 1 FROM chokaq_effects o WHERE o.key_ref = e.key_ref
      AND (o.state IN ('open', 'ambiguous') OR o.opened_at + o.keep_ms > ?))
  ORDER BY e.opened_at LIMIT ?)`

/** Rows whose key nobody holds and whose time since the key's last intent is over. Open ones never expire. */
export function pruneLedger({ session, nowMs }: Transaction, limit: number): number {
  return session.run(pruneEffects, nowMs, nowMs, limit)
}
