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
import type { Session } from '../session.ts'
import type { Transaction } from '../transactions.ts'
import { callsOf, closeAsAbsent } from './absence.ts'
import { audit } from './audit.ts'
import { conditionsOf } from './inspect.ts'
import { Endings, hotRowColumns, lockRows } from './leave-hot.ts'
import { deleteMarker, findMarker, type Marker, newestGeneration } from './markers.ts'
import { resurrectRow } from './resurrect-row.ts'
import { isUuid } from './uuid.ts'

const insertQueue = 'INSERT INTO chokaq.queues (name) VALUES ($1) ON CONFLICT (name) DO NOTHING'
const updateQueue = `UPDATE chokaq.queues SET
    paused = coalesce($2::boolean, paused),
    max_concurrency = CASE WHEN $3::boolean THEN $4::integer ELSE max_concurrency END,
    archive_retention_ms = CASE WHEN $5::boolean THEN $6::bigint ELSE archive_retention_ms END,
    dlq_retention_ms = CASE WHEN $7::boolean THEN $8::bigint ELSE dlq_retention_ms END
  WHERE name = $1`

/** setQueue: changes what is named and leaves the rest. */
export async function setQueue(tx: Transaction, change: QueueChange, by: Actor): Promise<void> {
  const { name, paused, maxConcurrency, archiveRetentionMs, dlqRetentionMs } = change
  const optional = (value: number | null | undefined): readonly [boolean, number | null] => [
    value !== undefined,
    value ?? null,
  ]
  await tx.session.all(insertQueue, name)
  await tx.session.all(
    updateQueue,
    name,
    paused ?? null,
    ...optional(maxConcurrency),
    ...optional(archiveRetentionMs),
    ...optional(dlqRetentionMs),
  )
  await audit(tx, by, 'set-queue', name, change)
  tx.jobsBecameReady = true
}

const lockHot = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now)
  SELECT ${hotRowColumns} FROM chokaq.jobs_hot h CROSS JOIN c WHERE h.id = $1 FOR UPDATE OF h`
const selectFinished = `SELECT outcome AS state FROM chokaq.jobs_archive WHERE id = $1
  UNION ALL SELECT 'dead' FROM chokaq.jobs_dlq WHERE id = $1`
const requestCancel = `UPDATE chokaq.jobs_hot SET cancel_requested_at = coalesce(cancel_requested_at, chokaq.now_ms())
  WHERE id = $1`

/**
 * cancel: scheduled | pending -> archive as cancelled; on an owned row only the wish is written
 * Precondition: in hot.
 * Returns cancelled, requested, finished or not-found.
 * Who: an operator.
 */
export async function cancelJob(tx: Transaction, jobId: string, by: Actor): Promise<CancelVerdict> {
  const { session } = tx
  if (!isUuid(jobId)) return { kind: 'not-found' }
  const [row] = await lockRows(session, lockHot, jobId)
  if (row === undefined) {
    const finished = await session.get<{ readonly state: ArchiveOutcome | 'dead' }>(selectFinished, jobId)
    return finished === undefined ? { kind: 'not-found' } : { kind: 'finished', state: finished.state }
  }
  if (row.state === 'fetched' || row.state === 'processing') {
    await session.all(requestCancel, jobId)
    await audit(tx, by, 'request-cancel', jobId, { state: row.state })
    return { kind: 'requested' }
  }
  const endings = new Endings()
  if (row.holdsKey) {
    // An attempt before left an effect in doubt: the wish to cancel does not answer whether it happened.
    endings.bury(row, { reason: 'InDoubt', failure: null, kind: 'cancelled', hold: true })
    await endings.write(tx)
    await audit(tx, by, 'cancel', jobId, { state: row.state, inDoubt: true })
    return { kind: 'finished', state: 'dead' }
  }
  // With a new token: a late repetition of the last owner's settle must not take this for its own work.
  endings.cancelled(row, {}, true)
  await endings.write(tx)
  await audit(tx, by, 'cancel', jobId, { state: row.state })
  return { kind: 'cancelled' }
}

const promoteOne = `UPDATE chokaq.jobs_hot SET state = 'pending', run_at = chokaq.now_ms()
  WHERE id = $1 AND state = 'scheduled' RETURNING 1`

/**
 * retryNow (promote): scheduled -> pending, due now
 * Returns whether it was scheduled.
 * Who: an operator.
 */
export async function retryNow(tx: Transaction, jobId: string, by: Actor): Promise<boolean> {
  if (!isUuid(jobId) || (await tx.session.get(promoteOne, jobId)) === undefined) return false
  tx.jobsBecameReady = true
  await audit(tx, by, 'retry-now', jobId, {})
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
  readonly now: number
}

const lockDead = `SELECT type, queue, created_at, revision, in_doubt, generation, encode(key_hash, 'hex') AS key_hash,
    chokaq.now_ms() AS now FROM chokaq.jobs_dlq WHERE id = $1 FOR UPDATE`
const selectKeyHolder = `SELECT id::text AS id FROM chokaq.jobs_hot WHERE key_hash = decode($1, 'hex')`

const maxRounds = 10

/**
 * resurrect: dlq -> pending
 * Precondition: the revision the operator saw; no active holder of the key; continue: same key, no live marker, not in
 * doubt, young enough; a new operation: what is in doubt is absent, and no other job of the key is in doubt. It takes the
 * next generation and replaces the marker.
 * Returns resurrected with its generation, or what stands in the way.
 * Who: an operator.
 */
export async function resurrect(
  tx: Transaction,
  request: ResurrectRequest,
  by: Actor,
  continueWithinMs: number | undefined,
): Promise<ResurrectVerdict> {
  const { session } = tx
  const { jobId, mode, revision, payload, key } = request
  const dead = isUuid(jobId) ? await session.get<DeadRow>(lockDead, jobId) : undefined
  if (dead === undefined) return { kind: 'not-found' }
  if (revision !== undefined && revision !== dead.revision) return { kind: 'changed', revision: dead.revision }
  const keyHash = key?.key.hash ?? dead.key_hash
  if (mode === 'continue' && keyHash !== dead.key_hash) return { kind: 'key-changed' }
  const calls = await callsOf(session, dead.key_hash, dead.generation)
  for (let round = 0; ; round += 1) {
    const holder = keyHash === null ? undefined : await session.get<{ readonly id: string }>(selectKeyHolder, keyHash)
    if (holder !== undefined || round > maxRounds) return { kind: 'active', jobId: holder?.id ?? jobId }
    const marker = keyHash === null ? undefined : await findMarker(session, keyHash)
    const obstacle =
      mode === 'continue'
        ? continueObstacle(jobId, dead, marker, continueWithinMs)
        : newOperationObstacle(jobId, dead, marker, calls, request.absence)
    if (obstacle !== undefined) return obstacle
    const generation = mode === 'continue' ? dead.generation : await nextGeneration(session, keyHash, dead, marker)
    const texts = [payload ?? null, key?.key.hash ?? null, key?.key.prefix ?? null, key?.key.scope ?? null]
    if ((await session.get(resurrectRow, jobId, generation, ...texts, key?.fingerprint ?? null)) === undefined) continue
    await session.all('DELETE FROM chokaq.jobs_dlq WHERE id = $1', jobId)
    const replaced = mode === 'new-operation' ? await replaceMarkers(session, jobId, keyHash, dead.key_hash) : []
    if (mode === 'new-operation') await closeAsAbsent(session, calls)
    const counters = new CounterSum()
    counters.add('jobs.resurrected', dead, mode)
    await session.addCounters(counters)
    const edited = { payload: payload !== undefined, key: keyHash !== dead.key_hash }
    const absent = absenceAudit(calls, request)
    const detail = { mode, generation, revision: dead.revision, edited, replacedMarkers: replaced, ...absent }
    await audit(tx, by, 'resurrect', jobId, detail)
    tx.jobsBecameReady = true
    return { kind: 'resurrected', generation }
  }
}

function continueObstacle(
  jobId: string,
  dead: DeadRow,
  marker: Marker | undefined,
  continueWithinMs: number | undefined,
): ResurrectVerdict | undefined {
  const live = marker?.is_live === 1 ? marker : undefined
  const isOwnDoubt = live?.state === 'in_doubt' && live.job_id === jobId
  if (dead.in_doubt === 1 || isOwnDoubt) return { kind: 'in-doubt' }
  if (live !== undefined) return { kind: 'marked', jobId: live.job_id, state: live.state }
  if (continueWithinMs !== undefined && dead.now - dead.created_at > continueWithinMs) return { kind: 'too-old' }
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

async function nextGeneration(
  session: Session,
  keyHash: string | null,
  dead: DeadRow,
  marker: Marker | undefined,
): Promise<number> {
  const known = keyHash === null ? 0 : await newestGeneration(session, keyHash, marker)
  // Another key has generations of its own, and its first one where nothing is known of it.
  return Math.max(keyHash === dead.key_hash ? dead.generation : 0, known) + 1
}

interface ReplacedMarker {
  readonly keyHash: string
  readonly state: string
  readonly jobId: string
}

/** The new operation's key starts clean; a doubt of this job about its old key is decided with the act. */
async function replaceMarkers(
  session: Session,
  jobId: string,
  keyHash: string | null,
  oldKeyHash: string | null,
): Promise<readonly ReplacedMarker[]> {
  const marker = keyHash === null ? undefined : await findMarker(session, keyHash)
  const old = oldKeyHash === null || oldKeyHash === keyHash ? undefined : await findMarker(session, oldKeyHash)
  const replaced: ReplacedMarker[] = []
  for (const each of [marker, old?.job_id === jobId && old.state === 'in_doubt' ? old : undefined]) {
    if (each === undefined) continue
    await deleteMarker(session, each.key_hash)
    replaced.push({ keyHash: each.key_hash, state: each.state, jobId: each.job_id })
  }
  return replaced
}

/**
 * purge: dlq -> nowhere
 * Precondition: not in doubt. With `jobIds` those, with `filter` what it matches, oldest first; both narrow each other.
 * Returns how many were deleted, at most `limit`.
 * Who: an operator.
 */
export async function purge(
  tx: Transaction,
  request: { readonly jobIds?: readonly string[]; readonly filter?: JobFilter; readonly limit: number },
  by: Actor,
): Promise<number> {
  const { session } = tx
  const { jobIds, filter, limit } = request
  if (jobIds === undefined && filter === undefined) return 0
  const { sql, values } = conditionsOf('dlq', filter ?? {}, 3)
  const ids = jobIds?.filter(isUuid) ?? null
  const rows = await session.all<{ readonly queue: string; readonly type: string }>(
    `DELETE FROM chokaq.jobs_dlq t WHERE t.id = ANY(ARRAY(SELECT id FROM chokaq.jobs_dlq WHERE NOT in_doubt
        AND ($1::uuid[] IS NULL OR id = ANY($1::uuid[])) AND ${sql} ORDER BY created_at, id LIMIT $2 FOR UPDATE))
      RETURNING t.queue, t.type`,
    ids,
    Math.max(0, Math.trunc(limit)),
    ...values,
  )
  if (rows.length === 0) return 0
  const counters = new CounterSum()
  for (const row of rows) counters.add('jobs.purged', row)
  await session.addCounters(counters)
  const [only, ...others] = jobIds ?? []
  const byId = others.length === 0 ? only : `${others.length + 1} ids`
  const subject = byId ?? JSON.stringify(filter ?? {})
  await audit(tx, by, 'purge', subject, { count: rows.length, ...(jobIds === undefined ? {} : { jobIds }) })
  return rows.length
}
