/** What operators do. Each act that changes something writes its line of the audit log in the same transaction. */
import { CounterSum } from '../../../core/counters.ts'
import type {
  Absence,
  Actor,
  CancelVerdict,
  JobFilter,
  QueueChange,
  ResurrectRequest,
  ResurrectVerdict,
} from '../../../core/inspector.ts'
import type { ArchiveOutcome } from '../../../core/job.ts'
import { absenceAudit, absenceRefusal, type RecordedCalls } from '../../absence.ts'
import { jobColumns } from '../../row-mapping.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../write-transaction.ts'
import { callsOf, closeAsAbsent } from './absence.ts'
import { audit } from './audit.ts'
import { conditionsOf } from './inspect.ts'
import { type HotRow, hotRowColumns } from './leave-hot.ts'
import { deleteMarker, findMarker, isLive, type Marker, newestGeneration } from './markers.ts'
import { cancel } from './settle-leaving.ts'

const insertQueue = `INSERT INTO chokaq_queues (name, paused) VALUES (?, 0) ON CONFLICT (name) DO NOTHING`
const setPaused = 'UPDATE chokaq_queues SET paused = ? WHERE name = ?'
const setMaxConcurrency = 'UPDATE chokaq_queues SET max_concurrency = ? WHERE name = ?'
const setArchiveRetention = 'UPDATE chokaq_queues SET archive_retention_ms = ? WHERE name = ?'
const setDlqRetention = 'UPDATE chokaq_queues SET dlq_retention_ms = ? WHERE name = ?'

/** setQueue: changes what is named and leaves the rest. */
export function setQueue(tx: Transaction, change: QueueChange, by: Actor): void {
  const { name, paused, maxConcurrency, archiveRetentionMs, dlqRetentionMs } = change
  const { session } = tx
  session.run(insertQueue, name)
  if (paused !== undefined) session.run(setPaused, paused ? 1 : 0, name)
  if (maxConcurrency !== undefined) session.run(setMaxConcurrency, maxConcurrency, name)
  if (archiveRetentionMs !== undefined) session.run(setArchiveRetention, archiveRetentionMs, name)
  if (dlqRetentionMs !== undefined) session.run(setDlqRetention, dlqRetentionMs, name)
  audit(tx, by, 'set-queue', name, change)
  tx.jobsBecameReady = true
}

const selectHot = `SELECT ${hotRowColumns} FROM chokaq_jobs_hot WHERE id = ?`
const selectFinished = `SELECT outcome AS state FROM chokaq_jobs_archive WHERE id = ?
  UNION ALL SELECT 'dead' FROM chokaq_jobs_dlq WHERE id = ?`
const raiseToken = 'UPDATE chokaq_jobs_hot SET token = ? WHERE rowid = ?'
const requestCancel =
  'UPDATE chokaq_jobs_hot SET cancel_requested_at = coalesce(cancel_requested_at, ?) WHERE rowid = ?'

/**
 * cancel: scheduled | pending -> archive as cancelled, or dlq in doubt where an effect is; on an owned row only the wish
 * is written
 * Precondition: in hot.
 * Returns cancelled, requested, finished (also where it went to the dlq) or not-found.
 * Who: an operator.
 */
export function cancelJob(tx: Transaction, jobId: string, by: Actor): CancelVerdict {
  const { session, nowMs } = tx
  const row = session.get<HotRow>(selectHot, jobId)
  if (row === undefined) {
    const finished = session.get<{ readonly state: ArchiveOutcome | 'dead' }>(selectFinished, jobId, jobId)
    return finished === undefined ? { kind: 'not-found' } : { kind: 'finished', state: finished.state }
  }
  if (row.state === 'fetched' || row.state === 'processing') {
    session.run(requestCancel, nowMs, row.rowid)
    audit(tx, by, 'request-cancel', jobId, { state: row.state })
    return { kind: 'requested' }
  }
  const counters = new CounterSum()
  // A late repetition of the last owner's settle must not take this for its own work.
  const token = session.reserveTokens(1)
  session.run(raiseToken, token, row.rowid)
  const outcome = cancel(tx, { ...row, token }, false, null, counters)
  tx.addCounters(counters)
  audit(tx, by, 'cancel', jobId, { state: row.state })
  return outcome === 'dead' ? { kind: 'finished', state: 'dead' } : { kind: 'cancelled' }
}

const promoteOne = `UPDATE chokaq_jobs_hot SET state = 'pending', run_at = ? WHERE id = ? AND state = 'scheduled'`

/**
 * retryNow (promote): scheduled -> pending, due now
 * Returns whether it was scheduled.
 * Who: an operator.
 */
export function retryNow(tx: Transaction, jobId: string, by: Actor): boolean {
  if (tx.session.run(promoteOne, tx.nowMs, jobId) === 0) return false
  tx.jobsBecameReady = true
  audit(tx, by, 'retry-now', jobId, {})
  return true
}

interface DeadRow {
  readonly type: string
  readonly queue: string
  readonly created_at: number
  readonly revision: number
  readonly in_doubt: number
  readonly generation: number
  readonly key_hash: string | null
}

const selectDead = `SELECT type, queue, created_at, revision, in_doubt, generation, key_hash FROM chokaq_jobs_dlq
  WHERE id = ?`
const selectKeyHolder = 'SELECT id FROM chokaq_jobs_hot WHERE key_hash = ?'

/**
 * What a resurrected row starts anew; everything else comes along, the attempt number and the history above all. The
 * values are bound in the order of the columns.
 */
export const anew: Readonly<Record<string, string>> = {
  run_at: '?',
  token: '?',
  generation: '?',
  key_hash: 'coalesce(?, key_hash)',
  key_prefix: 'coalesce(?, key_prefix)',
  key_scope: 'coalesce(?, key_scope)',
  key_computed: 'CASE WHEN ? IS NULL THEN key_computed ELSE 0 END',
  fingerprint: 'coalesce(?, fingerprint)',
  payload: 'coalesce(?, payload)',
  worker_id: 'NULL',
  failure_count: '0',
  crash_count: '0',
  fetch_crash_count: '0',
  revision: 'revision + 1',
  fetched_at: 'NULL',
  started_at: 'NULL',
  first_started_at: 'NULL',
  cancel_requested_at: 'NULL',
}
export const resurrectRow = `INSERT INTO chokaq_jobs_hot (${jobColumns.join(', ')}, state, suspect, fast_started)
  SELECT ${jobColumns.map((column) => anew[column] ?? column).join(', ')}, 'pending', 0, 0
  FROM chokaq_jobs_dlq WHERE id = ?`

/**
 * resurrect: dlq -> pending
 * Precondition: the revision the operator saw; no active holder of the key; continue: same key, no live marker, not in
 * doubt, young enough; a new operation: what is in doubt is absent, and no other job of the key is in doubt. It takes the
 * next generation and replaces the marker.
 * Returns resurrected with its generation, or what stands in the way.
 * Who: an operator.
 */
export function resurrect(
  tx: Transaction,
  request: ResurrectRequest,
  by: Actor,
  continueWithinMs: number | undefined,
): ResurrectVerdict {
  const { session, nowMs } = tx
  const { jobId, mode, revision, payload, key } = request
  const dead = session.get<DeadRow>(selectDead, jobId)
  if (dead === undefined) return { kind: 'not-found' }
  if (revision !== undefined && revision !== dead.revision) return { kind: 'changed', revision: dead.revision }
  const keyHash = key?.key.hash ?? dead.key_hash
  if (mode === 'continue' && keyHash !== dead.key_hash) return { kind: 'key-changed' }
  const holder = keyHash === null ? undefined : session.get<{ readonly id: string }>(selectKeyHolder, keyHash)
  if (holder !== undefined) return { kind: 'active', jobId: holder.id }
  const marker = keyHash === null ? undefined : findMarker(session, keyHash)
  const calls = callsOf(tx, dead.key_hash, dead.generation)
  const obstacle =
    mode === 'continue'
      ? continueObstacle(tx, jobId, dead, marker, continueWithinMs)
      : newOperationObstacle(jobId, dead, marker, calls, request.absence)
  if (obstacle !== undefined) return obstacle

  const generation = mode === 'continue' ? dead.generation : nextGeneration(session, keyHash, dead, marker)
  const token = session.reserveTokens(1)
  const newHash = key?.key.hash ?? null
  const keyValues = [newHash, key?.key.prefix ?? null, key?.key.scope ?? null, newHash, key?.fingerprint ?? null]
  session.run(resurrectRow, nowMs, token, generation, ...keyValues, payload ?? null, jobId)
  session.run('DELETE FROM chokaq_jobs_dlq WHERE id = ?', jobId)
  const replaced = mode === 'new-operation' ? replaceMarkers(session, jobId, keyHash, dead.key_hash, marker) : []
  if (mode === 'new-operation') closeAsAbsent(tx, calls)
  const counters = new CounterSum()
  counters.add('jobs.resurrected', dead, mode)
  tx.addCounters(counters)
  const edited = { payload: payload !== undefined, key: keyHash !== dead.key_hash }
  const absent = absenceAudit(calls, request)
  const detail = { mode, generation, revision: dead.revision, edited, replacedMarkers: replaced, ...absent }
  audit(tx, by, 'resurrect', jobId, detail)
  tx.jobsBecameReady = true
  return { kind: 'resurrected', generation }
}

function continueObstacle(
  { nowMs }: Transaction,
  jobId: string,
  dead: DeadRow,
  marker: Marker | undefined,
  continueWithinMs: number | undefined,
): ResurrectVerdict | undefined {
  const live = marker !== undefined && isLive(marker, nowMs) ? marker : undefined
  const isOwnDoubt = live?.state === 'in_doubt' && live.job_id === jobId
  if (dead.in_doubt === 1 || isOwnDoubt) return { kind: 'in-doubt' }
  if (live !== undefined) return { kind: 'marked', jobId: live.job_id, state: live.state }
  if (continueWithinMs !== undefined && nowMs - dead.created_at > continueWithinMs) return { kind: 'too-old' }
  return undefined
}

function newOperationObstacle(
  jobId: string,
  dead: DeadRow,
  marker: Marker | undefined,
  calls: RecordedCalls,
  absence: Absence | undefined,
): ResurrectVerdict | undefined {
  const doubt = marker?.state === 'in_doubt' ? marker : undefined
  // Another job of the key may have acted: that is to be decided first, and not by replacing its marker.
  if (doubt !== undefined && doubt.job_id !== jobId) return { kind: 'marked', jobId: doubt.job_id, state: doubt.state }
  return absenceRefusal(calls, dead.in_doubt === 1 || doubt !== undefined, absence)
}

function nextGeneration(session: Session, keyHash: string | null, dead: DeadRow, marker: Marker | undefined): number {
  const known = keyHash === null ? 0 : newestGeneration(session, keyHash, marker)
  // Another key has generations of its own, and its first one where nothing is known of it.
  return Math.max(keyHash === dead.key_hash ? dead.generation : 0, known) + 1
}

interface ReplacedMarker {
  readonly keyHash: string
  readonly state: string
  readonly jobId: string
}

/** The new operation's key starts clean; a doubt of this job about its old key is decided with the act. */
function replaceMarkers(
  session: Session,
  jobId: string,
  keyHash: string | null,
  oldKeyHash: string | null,
  marker: Marker | undefined,
): readonly ReplacedMarker[] {
  const old = oldKeyHash === null || oldKeyHash === keyHash ? undefined : findMarker(session, oldKeyHash)
  const gone = [marker, old?.job_id === jobId && old.state === 'in_doubt' ? old : undefined]
  return gone.flatMap((each) => {
    if (each === undefined) return []
    deleteMarker(session, each.key_hash)
    return [{ keyHash: each.key_hash, state: each.state, jobId: each.job_id }]
  })
}

/**
 * purge: dlq -> nowhere
 * Precondition: not in doubt. With `jobIds` those, with `filter` what it matches, oldest first; both narrow each other.
 * Returns how many were deleted, at most `limit`.
 * Who: an operator.
 */
export function purge(
  tx: Transaction,
  request: { readonly jobIds?: readonly string[]; readonly filter?: JobFilter; readonly limit: number },
  by: Actor,
): number {
  const { session } = tx
  const { jobIds, filter, limit } = request
  if (jobIds === undefined && filter === undefined) return 0
  const { sql, values } = conditionsOf('dlq', filter ?? {})
  const named = jobIds === undefined ? '' : `AND id IN (SELECT value FROM json_each(?))`
  const rows = session.all<{ readonly queue: string; readonly type: string }>(
    `DELETE FROM chokaq_jobs_dlq WHERE rowid IN (SELECT rowid FROM chokaq_jobs_dlq WHERE in_doubt = 0 AND ${sql} ${named}
      ORDER BY created_at, id LIMIT ?) RETURNING queue, type`,
    ...values,
    ...(jobIds === undefined ? [] : [JSON.stringify(jobIds)]),
    Math.max(0, Math.trunc(limit)),
  )
  if (rows.length === 0) return 0
  const counters = new CounterSum()
  for (const row of rows) counters.add('jobs.purged', row)
  tx.addCounters(counters)
  const [only, ...others] = jobIds ?? []
  const byId = others.length === 0 ? only : `${others.length + 1} ids`
  const subject = byId ?? JSON.stringify(filter ?? {})
  audit(tx, by, 'purge', subject, { count: rows.length, ...(jobIds === undefined ? {} : { jobIds }) })
  return rows.length
}
