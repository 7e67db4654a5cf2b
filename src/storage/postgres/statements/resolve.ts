/**
 * How a person ends a doubt. Every decision is one transaction that starts from the dead row, locked, and the revision
 * the person saw, so a second operator, a second click and a duplicate that runs meanwhile change nothing.
 *
 *   adopt, an effect in doubt      dlq -> pending: the handler goes on and finds the effect done
 *   adopt, no effect in doubt      dlq -> archive as completed, with the given result and its marker
 *   retry                          dlq -> pending: what was in doubt is declared not executed
 *   abandon                        dlq -> archive as cancelled, with a marker terminal: duplicates get already-failed
 *   compensate                     dlq -> pending, where the worker undoes what is done instead of running the handler
 *
 * The marker in_doubt stays while the job is back in hot: its own start ignores it, everybody else's is refused, and the
 * settle that ends the job replaces it. The claim is taken by the insert of the hot row, which the key of another job
 * prevents.
 */
import { CounterSum } from '../../../core/counters.ts'
import { unreachable } from '../../../core/errors.ts'
import { cleanText, serializeFailure } from '../../../core/failure.ts'
import type { Actor, ResolveRequest, ResolveVerdict } from '../../../core/inspector.ts'
import { compensateName } from '../../../core/ledger.ts'
import { jobColumns } from '../../row-mapping.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../transactions.ts'
import { audit } from './audit.ts'
import { columnsOf } from './leave-hot.ts'
import { leaveDone } from './ledger-memos.ts'
import { leaveMarkers } from './markers.ts'
import { resurrectRow } from './resurrect-row.ts'
import { isUuid } from './uuid.ts'

interface ReviewRow {
  readonly id: string
  readonly type: string
  readonly queue: string
  readonly reason: string
  readonly revision: number
  readonly in_doubt: number
  readonly generation: number
  readonly token: number
  readonly key_hash: string | null
  readonly fingerprint: string | null
}

interface DoubtRow {
  readonly id: string
  readonly name: string
  readonly item: string
}

type Refusal = Extract<ResolveVerdict, { readonly kind: 'not-possible' | 'active' }>

const lockReview = `SELECT id::text AS id, type, queue, reason, revision, in_doubt, generation, token,
    encode(key_hash, 'hex') AS key_hash, fingerprint
  FROM chokaq.jobs_dlq WHERE id = $1 FOR UPDATE`
const selectHolder = `SELECT id::text AS id FROM chokaq.jobs_hot WHERE key_hash = decode($1, 'hex')`
const lockDoubts = `SELECT id::text AS id, name, item FROM chokaq.effects
  WHERE key_ref = $1 AND generation = $2 AND state IN ('open', 'ambiguous') ORDER BY opened_at, id FOR UPDATE`
const selectLastDecision = `SELECT actor, detail FROM chokaq.audit_log
  WHERE act = 'resolve' AND subject = $1 ORDER BY id DESC LIMIT 1`

/**
 * resolve: dlq -> pending | archive
 * Precondition: in review, and the revision the operator saw; nobody else runs under the key.
 * Returns resolved, or who was there first, or what stands in the way.
 * Who: an operator.
 */
export async function resolve(tx: Transaction, request: ResolveRequest, by: Actor): Promise<ResolveVerdict> {
  const { session } = tx
  const row = isUuid(request.jobId) ? await session.get<ReviewRow>(lockReview, request.jobId) : undefined
  if (row === undefined || (row.in_doubt === 0 && row.reason !== 'CompleteConflict')) {
    return decidedBefore(session, request)
  }
  if (row.revision !== request.revision) return { kind: 'changed', revision: row.revision }
  const holder = await holderOf(session, row)
  if (holder !== undefined) return { kind: 'active', jobId: holder }
  const doubts = row.key_hash === null ? [] : await session.all<DoubtRow>(lockDoubts, row.key_hash, row.generation)
  const refusal = await decide(tx, request, row, doubts, by)
  if (refusal !== undefined) return refusal
  await audit(tx, by, 'resolve', row.id, {
    decision: request.decision,
    revision: row.revision,
    reason: row.reason,
    effects: doubts.map(({ name, item }) => ({ name, item })),
  })
  return { kind: 'resolved' }
}

async function holderOf(session: Session, { key_hash }: ReviewRow): Promise<string | undefined> {
  if (key_hash === null) return undefined
  return (await session.get<{ readonly id: string }>(selectHolder, key_hash))?.id
}

async function decidedBefore(session: Session, { jobId }: ResolveRequest): Promise<ResolveVerdict> {
  const last = await session.get<{ readonly actor: string; readonly detail: string }>(selectLastDecision, jobId)
  if (last === undefined) return { kind: 'not-found' }
  const detail = JSON.parse(last.detail) as { readonly decision?: unknown }
  return { kind: 'already-resolved', by: last.actor, as: String(detail.decision) }
}

/** What makes the decision impossible; undefined where it was done. Nothing is written where it is impossible. */
async function decide(
  tx: Transaction,
  request: ResolveRequest,
  row: ReviewRow,
  doubts: readonly DoubtRow[],
  by: Actor,
): Promise<Refusal | undefined> {
  switch (request.decision) {
    case 'adopt':
      // Who names an effect never means the job, even where nothing is in doubt any more.
      return doubts.length > 0 || request.effect !== undefined
        ? adoptEffect(tx, request, row, doubts)
        : adoptJob(tx, request, row)
    case 'retry':
      return (await backToPending(tx, row)) ?? closeAll(tx, doubts, 'not-executed')
    case 'abandon':
      await closeAll(tx, doubts, 'abandoned')
      return abandon(tx, request, row, by)
    case 'compensate':
      return compensate(tx, request, row, doubts)
    default:
      return unreachable(request.decision, 'decision')
  }
}

const closeDoubts = `UPDATE chokaq.effects SET state = $2, closed_at = coalesce(closed_at, chokaq.now_ms()), result = NULL
  WHERE id = ANY($1::uuid[]) AND state IN ('open', 'ambiguous')`
/** What happened after all has no failure: a row that is done and has one says that its result was dropped. */
const adoptDoubt = `UPDATE chokaq.effects SET state = 'done', closed_at = coalesce(closed_at, chokaq.now_ms()),
    result = $2::text::json, failure = NULL
  WHERE id = $1 AND state IN ('open', 'ambiguous')`

async function closeAll({ session }: Transaction, doubts: readonly DoubtRow[], state: string): Promise<undefined> {
  const ids = doubts.map(({ id }) => id).sort()
  if (ids.length > 0) await session.all(closeDoubts, ids, state)
}

async function adoptEffect(
  tx: Transaction,
  { effect, result }: ResolveRequest,
  row: ReviewRow,
  doubts: readonly DoubtRow[],
): Promise<Refusal | undefined> {
  const named = new Set(doubts.map(({ name, item }) => `${name}\n${item}`))
  if (effect === undefined && named.size > 1) {
    const problem =
      'several effects are in doubt: name the one whose result you adopt, and decide the others one by one'
    return { kind: 'not-possible', problem }
  }
  const wanted = doubts.filter(
    ({ name, item }) => effect === undefined || (name === effect.name && item === effect.item),
  )
  const newest = wanted.at(-1)
  if (newest === undefined) {
    return { kind: 'not-possible', problem: `no effect "${effect?.name ?? ''}" of this job is in doubt` }
  }
  const refusal = await backToPending(tx, row)
  if (refusal !== undefined) return refusal
  await tx.session.all(adoptDoubt, newest.id, result)
  return closeAll(tx, wanted.slice(0, -1), 'superseded')
}

/** Takes the claim. Where another job took it at this moment, nothing is written. */
async function backToPending(tx: Transaction, row: ReviewRow): Promise<Refusal | undefined> {
  const { session } = tx
  const unchanged = [null, null, null, null, null] as const
  if ((await session.get(resurrectRow, row.id, row.generation, ...unchanged)) === undefined) {
    return { kind: 'active', jobId: (await holderOf(session, row)) ?? row.id }
  }
  await session.all('DELETE FROM chokaq.jobs_dlq WHERE id = $1', row.id)
  const counters = new CounterSum()
  counters.add('jobs.resurrected', row, 'resolve')
  await session.addCounters(counters)
  tx.jobsBecameReady = true
  return undefined
}

const archiveDead = `
  WITH g AS (DELETE FROM chokaq.jobs_dlq WHERE id = $1 RETURNING *)
  INSERT INTO chokaq.jobs_archive (${jobColumns.join(', ')}, outcome, finished_at, result, duplicate_of)
  SELECT ${columnsOf({ revision: 'g.revision + 1' })}, $2, (SELECT chokaq.now_ms()), $3::text::json, g.duplicate_of FROM g`

/** Nothing but the job itself is in doubt: the person says that it is done, and with which result. */
async function adoptJob(tx: Transaction, request: ResolveRequest, row: ReviewRow): Promise<undefined> {
  const { result, markerLifeMs } = request
  await leaveOwnMarker(tx.session, row, { state: 'completed', result, failure: null, life: Math.ceil(markerLifeMs) })
  await tx.session.all(archiveDead, row.id, 'completed', result)
  const counters = new CounterSum()
  counters.add('jobs.completed', row)
  await tx.session.addCounters(counters)
}

async function abandon(tx: Transaction, request: ResolveRequest, row: ReviewRow, by: Actor): Promise<undefined> {
  const failure = serializeFailure({
    name: 'Abandoned',
    message: cleanText(`Abandoned by ${by.actor}: ${by.note}`, 2_000),
  })
  const life = Math.ceil(request.markerLifeMs)
  await leaveOwnMarker(tx.session, row, { state: 'terminal', result: null, failure, life })
  await tx.session.all(archiveDead, row.id, 'cancelled', null)
  const counters = new CounterSum()
  counters.add('jobs.cancelled', row)
  await tx.session.addCounters(counters)
}

interface OwnMarker {
  readonly state: 'completed' | 'terminal'
  readonly result: string | null
  readonly failure: string | null
  readonly life: number
}

/** A live marker of another job stays. */
async function leaveOwnMarker(session: Session, row: ReviewRow, marker: OwnMarker): Promise<void> {
  const { id, key_hash: key, generation, token, fingerprint } = row
  if (key !== null) await leaveMarkers(session, [{ ...marker, id, key, generation, token, fingerprint }])
}

/** The worker has the code that undoes, so the wish is written down and the job goes back to it. */
async function compensate(
  tx: Transaction,
  request: ResolveRequest,
  row: ReviewRow,
  doubts: readonly DoubtRow[],
): Promise<Refusal | undefined> {
  if (row.key_hash === null) {
    return { kind: 'not-possible', problem: 'the job has no key, so no effect of it is recorded' }
  }
  if (doubts.length > 0) {
    const problem =
      'an effect is still in doubt: adopt its result or retry first, so that it is known what has to be undone'
    return { kind: 'not-possible', problem }
  }
  const refusal = await backToPending(tx, row)
  if (refusal !== undefined) return refusal
  const { id, key_hash: keyRef, generation } = row
  await leaveDone(tx.session, [
    {
      id: request.id,
      ref: { kind: 'checkpoint', keyRef, generation, name: compensateName, item: '' },
      lease: { jobId: id, token: Math.max(1, row.token) },
      workerId: 'operator',
      attempt: 1,
      keepMs: request.markerLifeMs,
      result: null,
    },
  ])
  return undefined
}
