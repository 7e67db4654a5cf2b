/**
 * How a person ends a doubt. Every decision is one transaction that starts from the dead row and the revision the person
 * saw, so a second operator, a second click and a duplicate that runs meanwhile change nothing.
 *
 *   adopt, an effect in doubt      dlq -> pending: the handler goes on and finds the effect done
 *   adopt, no effect in doubt      dlq -> archive as completed, with the given result and its marker
 *   retry                          dlq -> pending: what was in doubt is declared not executed
 *   abandon                        dlq -> archive as cancelled, with a marker terminal: duplicates get already-failed
 *   compensate                     dlq -> pending, where the worker undoes what is done instead of running the handler
 *
 * The marker in_doubt stays while the job is back in hot: its own start ignores it, everybody else's is refused, and the
 * settle that ends the job replaces it.
 */
import { CounterSum } from '../../../core/counters.ts'
import { unreachable } from '../../../core/errors.ts'
import { cleanText, serializeFailure } from '../../../core/failure.ts'
import type { Actor, ResolveRequest, ResolveVerdict } from '../../../core/inspector.ts'
import { compensateName } from '../../../core/ledger.ts'
import { jobColumns } from '../../row-mapping.ts'
import type { Transaction } from '../write-transaction.ts'
import { audit } from './audit.ts'
import { findLiveMarker, writeMarker } from './markers.ts'
import { resurrectRow } from './operate.ts'

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

const selectReview = `SELECT id, type, queue, reason, revision, in_doubt, generation, token, key_hash, fingerprint
  FROM chokaq_jobs_dlq WHERE id = ?`
const selectHolder = 'SELECT id FROM chokaq_jobs_hot WHERE key_hash = ?'
const selectDoubts = `SELECT id, name, item FROM chokaq_effects
  WHERE key_ref = ? AND generation = ? AND state IN ('open', 'ambiguous') ORDER BY opened_at, id`
const selectLastDecision = `SELECT actor, detail FROM chokaq_audit_log
  WHERE act = 'resolve' AND subject = ? ORDER BY id DESC LIMIT 1`

/**
 * resolve: dlq -> pending | archive
 * Precondition: in review, and the revision the operator saw; nobody else runs under the key.
 * Returns resolved, or who was there first, or what stands in the way.
 * Who: an operator.
 */
export function resolve(tx: Transaction, request: ResolveRequest, by: Actor): ResolveVerdict {
  const { session } = tx
  const row = session.get<ReviewRow>(selectReview, request.jobId)
  if (row === undefined || (row.in_doubt === 0 && row.reason !== 'CompleteConflict')) return decidedBefore(tx, request)
  if (row.revision !== request.revision) return { kind: 'changed', revision: row.revision }
  const holder = row.key_hash === null ? undefined : session.get<{ readonly id: string }>(selectHolder, row.key_hash)
  if (holder !== undefined) return { kind: 'active', jobId: holder.id }
  const doubts = row.key_hash === null ? [] : session.all<DoubtRow>(selectDoubts, row.key_hash, row.generation)
  const problem = decide(tx, request, row, doubts, by)
  if (problem !== undefined) return { kind: 'not-possible', problem }
  audit(tx, by, 'resolve', row.id, {
    decision: request.decision,
    revision: row.revision,
    reason: row.reason,
    effects: doubts.map(({ name, item }) => ({ name, item })),
  })
  return { kind: 'resolved' }
}

function decidedBefore({ session }: Transaction, { jobId }: ResolveRequest): ResolveVerdict {
  const last = session.get<{ readonly actor: string; readonly detail: string }>(selectLastDecision, jobId)
  if (last === undefined) return { kind: 'not-found' }
  const detail = JSON.parse(last.detail) as { readonly decision?: unknown }
  return { kind: 'already-resolved', by: last.actor, as: String(detail.decision) }
}

/** What makes the decision impossible; undefined where it was done. */
function decide(
  tx: Transaction,
  request: ResolveRequest,
  row: ReviewRow,
  doubts: readonly DoubtRow[],
  by: Actor,
): string | undefined {
  switch (request.decision) {
    case 'adopt':
      // Who names an effect never means the job, even where nothing is in doubt any more.
      return doubts.length > 0 || request.effect !== undefined
        ? adoptEffect(tx, request, row, doubts)
        : adoptJob(tx, request, row)
    case 'retry':
      closeAll(tx, doubts, 'not-executed')
      backToPending(tx, row)
      return undefined
    case 'abandon':
      closeAll(tx, doubts, 'abandoned')
      abandon(tx, request, row, by)
      return undefined
    case 'compensate':
      return compensate(tx, request, row, doubts)
    default:
      return unreachable(request.decision, 'decision')
  }
}

const closeDoubt = `UPDATE chokaq_effects SET state = ?, closed_at = coalesce(closed_at, ?), result = NULL WHERE id = ?
  AND state IN ('open', 'ambiguous')`
/** What happened after all has no failure: a row that is done and has one says that its result was dropped. */
const adoptDoubt = `UPDATE chokaq_effects SET state = 'done', closed_at = coalesce(closed_at, ?), result = ?,
    failure = NULL WHERE id = ? AND state IN ('open', 'ambiguous')`

function closeAll({ session, nowMs }: Transaction, doubts: readonly DoubtRow[], state: string): void {
  for (const { id } of doubts) session.run(closeDoubt, state, nowMs, id)
}

function adoptEffect(
  tx: Transaction,
  { effect, result }: ResolveRequest,
  row: ReviewRow,
  doubts: readonly DoubtRow[],
): string | undefined {
  const named = new Set(doubts.map(({ name, item }) => `${name}\n${item}`))
  if (effect === undefined && named.size > 1) {
    return 'several effects are in doubt: name the one whose result you adopt, and decide the others one by one'
  }
  const wanted = doubts.filter(
    ({ name, item }) => effect === undefined || (name === effect.name && item === effect.item),
  )
  const newest = wanted.at(-1)
  if (newest === undefined) return `no effect "${effect?.name ?? ''}" of this job is in doubt`
  tx.session.run(adoptDoubt, tx.nowMs, result, newest.id)
  closeAll(tx, wanted.slice(0, -1), 'superseded')
  backToPending(tx, row)
  return undefined
}

function backToPending(tx: Transaction, row: ReviewRow): void {
  const { session, nowMs } = tx
  const unchanged = [null, null, null, null, null, null] as const
  session.run(resurrectRow, nowMs, session.reserveTokens(1), row.generation, ...unchanged, row.id)
  session.run('DELETE FROM chokaq_jobs_dlq WHERE id = ?', row.id)
  const counters = new CounterSum()
  counters.add('jobs.resurrected', row, 'resolve')
  tx.addCounters(counters)
  tx.jobsBecameReady = true
}

const kept = jobColumns.join(', ')
const archiveDead = `INSERT INTO chokaq_jobs_archive (${kept}, outcome, finished_at, result, duplicate_of)
  SELECT ${jobColumns.map((column) => (column === 'revision' ? 'revision + 1' : column)).join(', ')}, ?, ?, ?, duplicate_of
  FROM chokaq_jobs_dlq WHERE id = ?`

function leaveDlq(tx: Transaction, row: ReviewRow, outcome: 'completed' | 'cancelled', result: string | null): void {
  tx.session.run(archiveDead, outcome, tx.nowMs, result, row.id)
  tx.session.run('DELETE FROM chokaq_jobs_dlq WHERE id = ?', row.id)
}

/** Nothing but the job itself is in doubt: the person says that it is done, and with which result. */
function adoptJob(tx: Transaction, request: ResolveRequest, row: ReviewRow): string | undefined {
  const { session, nowMs } = tx
  const live = row.key_hash === null ? undefined : findLiveMarker(session, row.key_hash, nowMs)
  const isForeign = live !== undefined && live.job_id !== row.id
  if (!isForeign && row.key_hash !== null) {
    const key = { keyHash: row.key_hash, jobId: row.id, generation: row.generation, token: row.token }
    const expiresAtMs = Math.ceil(nowMs + request.markerLifeMs)
    const marker = { ...key, fingerprint: row.fingerprint, result: request.result, expiresAtMs }
    writeMarker(session, { ...marker, state: 'completed' }, nowMs)
  }
  leaveDlq(tx, row, 'completed', request.result)
  const counters = new CounterSum()
  counters.add('jobs.completed', row)
  tx.addCounters(counters)
  return undefined
}

function abandon(tx: Transaction, request: ResolveRequest, row: ReviewRow, by: Actor): void {
  const { session, nowMs } = tx
  const live = row.key_hash === null ? undefined : findLiveMarker(session, row.key_hash, nowMs)
  if (row.key_hash !== null && (live === undefined || live.job_id === row.id)) {
    const failure = { name: 'Abandoned', message: cleanText(`Abandoned by ${by.actor}: ${by.note}`, 2_000) }
    const key = { keyHash: row.key_hash, jobId: row.id, generation: row.generation, token: row.token }
    const expiresAtMs = Math.ceil(nowMs + request.markerLifeMs)
    const marker = {
      ...key,
      fingerprint: row.fingerprint,
      result: null,
      failure: serializeFailure(failure),
      expiresAtMs,
    }
    writeMarker(session, { ...marker, state: 'terminal' }, nowMs)
  }
  leaveDlq(tx, row, 'cancelled', null)
  const counters = new CounterSum()
  counters.add('jobs.cancelled', row)
  tx.addCounters(counters)
}

const insertWish = `INSERT INTO chokaq_effects (id, kind, key_ref, generation, name, item, state, job_id, worker_id,
    attempt, token, owner_gone, replayed, provider, fingerprint, opened_at, closed_at, keep_ms, input, result)
  VALUES (?, 'checkpoint', ?, ?, '${compensateName}', '', 'done', ?, 'operator', 1, ?, 0, 0, '', '', ?, ?, ?, 'null', NULL)
  ON CONFLICT (key_ref, generation, kind, name, item) WHERE kind IN ('memo', 'checkpoint') DO NOTHING`

/** The worker has the code that undoes, so the wish is written down and the job goes back to it. */
function compensate(
  tx: Transaction,
  request: ResolveRequest,
  row: ReviewRow,
  doubts: readonly DoubtRow[],
): string | undefined {
  if (row.key_hash === null) return 'the job has no key, so no effect of it is recorded'
  if (doubts.length > 0) {
    return 'an effect is still in doubt: adopt its result or retry first, so that it is known what has to be undone'
  }
  const { session, nowMs } = tx
  const token = session.reserveTokens(1)
  const keepMs = Math.ceil(request.markerLifeMs)
  session.run(insertWish, request.id, row.key_hash, row.generation, row.id, token, nowMs, nowMs, keepMs)
  backToPending(tx, row)
  return undefined
}
