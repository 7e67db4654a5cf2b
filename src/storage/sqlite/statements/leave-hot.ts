/**
 * The two ways out of hot: into the archive and into the DLQ. The row is copied inside the database, so a payload never
 * passes through JavaScript, and deleted in the same transaction; what the key leaves behind is written first, because
 * only the row that still holds the claim may write it.
 */
import type { CounterSum } from '../../../core/counters.ts'
import { appendHistory } from '../../../core/failure.ts'
import { serializeFailure, type StoredFailure } from '../../../core/failure.ts'
import type { ArchiveOutcome, DeadReason } from '../../../core/job.ts'
import { histogramLabel } from '../../../core/metrics.ts'
import { jobColumns } from '../../row-mapping.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../write-transaction.ts'
import { holdsKey } from './ledger.ts'
import { deleteMarker, findLiveMarker, findMarker, writeMarker } from './markers.ts'

/** What every ending needs to know of a hot row. */
export interface HotRow {
  readonly rowid: number
  readonly id: string
  readonly token: number
  readonly state: 'scheduled' | 'pending' | 'fetched' | 'processing'
  readonly type: string
  readonly queue: string
  readonly attempt: number
  readonly failure_count: number
  readonly crash_count: number
  readonly fetch_crash_count: number
  readonly generation: number
  readonly fast_started: number
  readonly started_at: number | null
  readonly when_interrupted: 'resume' | 'review' | null
  readonly crash_budget: number | null
  readonly fetch_crash_budget: number | null
  readonly worker_id: string | null
  readonly cancel_requested_at: number | null
  readonly key_hash: string | null
  readonly key_computed: number
  readonly fingerprint: string | null
}

export const hotRowColumns = `rowid, id, token, state, type, queue, attempt, failure_count, crash_count,
  fetch_crash_count, generation, fast_started, started_at, when_interrupted, crash_budget, fetch_crash_budget, worker_id,
  cancel_requested_at, key_hash, key_computed, fingerprint`

/** Once for each attempt that its owner ends, as far as its handler ran. */
export function countDuration(
  { nowMs }: Transaction,
  row: Pick<HotRow, 'queue' | 'type' | 'state' | 'started_at'>,
  counters: CounterSum,
): void {
  if (row.state !== 'processing' || row.started_at === null) return
  counters.add('duration', row, histogramLabel(nowMs - row.started_at))
}

/** A review handler had started: nobody knows how far it came. */
export function isInterruptedReview(row: HotRow): boolean {
  return row.state === 'processing' && row.when_interrupted === 'review'
}

const deleteHot = 'DELETE FROM chokaq_jobs_hot WHERE rowid = ?'
const kept = jobColumns.join(', ')
const keptOfStub = jobColumns
  .map((column) => (['payload', 'tags', 'failure', 'history'].includes(column) ? 'NULL' : column))
  .join(', ')

// OR FAIL: for one row it means what ABORT means, but spares the statement journal of an INSERT … SELECT.
const archiveHot = `INSERT OR FAIL INTO chokaq_jobs_archive (${kept}, outcome, duplicate_of, finished_at, result)
  SELECT ${kept}, ?, ?, ?, ? FROM chokaq_jobs_hot WHERE rowid = ?`
const archiveStub = `INSERT OR FAIL INTO chokaq_jobs_archive (${kept}, outcome, finished_at, expires_at)
  SELECT ${keptOfStub}, ?, ?, ? FROM chokaq_jobs_hot WHERE rowid = ?`

/** Only the row id is needed: the hottest path of all reads no more than it must. */
export function moveToArchive(
  { session, nowMs }: Transaction,
  rowid: number,
  outcome: ArchiveOutcome,
  duplicateOf: string | null,
  result: string | null,
): void {
  session.statement(archiveHot).run(outcome, duplicateOf, nowMs, result, rowid)
  session.statement(deleteHot).run(rowid)
}

export function leaveStub({ session, nowMs }: Transaction, rowid: number, expiresAtMs: number): void {
  session.run(archiveStub, 'completed', nowMs, expiresAtMs, rowid)
  session.run(deleteHot, rowid)
}

export interface Burial {
  readonly reason: DeadReason
  readonly failure: StoredFailure | null
  /** How the history names the end of the attempt. */
  readonly kind: string
  /** Leaves a marker in doubt, which only a decision of a person ends. */
  readonly hold: boolean
  readonly addFailures: number
  readonly addCrashes: number
  readonly addFetchCrashes: number
  readonly result: string | null
  readonly duplicateOf: string | null
  /** Leaves a marker terminal for this long: the outcome is final and known. */
  readonly terminalForMs: number | null
}

export const plainBurial = {
  hold: false,
  addFailures: 0,
  addCrashes: 0,
  addFetchCrashes: 0,
  result: null,
  duplicateOf: null,
  terminalForMs: null,
} as const

const changed: Readonly<Record<string, string>> = {
  failure_count: 'failure_count + ?',
  crash_count: 'crash_count + ?',
  fetch_crash_count: 'fetch_crash_count + ?',
  revision: 'revision + 1',
  failure: 'coalesce(?, failure)',
  history: 'coalesce(?, history)',
}
const buryHot = `INSERT INTO chokaq_jobs_dlq (${kept}, reason, in_doubt, duplicate_of, finished_at, result)
  SELECT ${jobColumns.map((column) => changed[column] ?? column).join(', ')}, ?, ?, ?, ?, ?
  FROM chokaq_jobs_hot WHERE rowid = ?`

/** Moves a row into the DLQ, with its marker where a person has to decide, and counts it. */
export function moveToDlq(tx: Transaction, row: HotRow, burial: Burial, counters: CounterSum): void {
  const { session, nowMs } = tx
  // An effect in doubt holds the key, whatever ended the job: only a decision of a person may free it.
  const hold = burial.hold || holdsKey(session, row.key_hash, row.generation)
  if (!hold) forgetOwnDoubt(tx, row)
  const leftMarker = hold ? holdKey(tx, row) : leaveTerminal(tx, row, burial)
  session.run(
    buryHot,
    burial.addFailures,
    burial.addCrashes,
    burial.addFetchCrashes,
    burial.failure === null ? null : serializeFailure(burial.failure),
    historyWith(session, row, burial.failure, burial.kind, nowMs),
    burial.reason,
    hold ? 1 : 0,
    burial.duplicateOf,
    nowMs,
    burial.result,
    row.rowid,
  )
  session.run(deleteHot, row.rowid)
  counters.add('jobs.dlq', row, burial.reason)
  // A conflict is an outcome of its own, and the key stays with the other job's marker.
  if (burial.reason !== 'CompleteConflict') countReleasedKey(row, leftMarker, counters)
}

/** Moves a row into the archive as cancelled and counts it. Precondition: nothing of its key is in doubt. */
export function moveToCancelled(tx: Transaction, row: HotRow, counters: CounterSum): void {
  forgetOwnDoubt(tx, row)
  moveToArchive(tx, row.rowid, 'cancelled', null, null)
  counters.add('jobs.cancelled', row)
  countReleasedKey(row, false, counters)
}

/**
 * A job that a decision sent back keeps its marker in doubt while it is hot. Where it ends with nothing in doubt, the
 * marker would hold the key for ever: no review shows it any more.
 */
function forgetOwnDoubt({ session }: Transaction, { key_hash: keyHash, id }: HotRow): void {
  const marker = keyHash === null ? undefined : findMarker(session, keyHash)
  if (marker?.state === 'in_doubt' && marker.job_id === id) deleteMarker(session, marker.key_hash)
}

function countReleasedKey(row: HotRow, leftMarker: boolean, counters: CounterSum): void {
  if (row.key_hash !== null && !leftMarker) counters.add('idempotency.claims', row, 'released')
}

/** A live marker of another job stays: it is older evidence, and the dead row itself says that it is in doubt. */
function holdKey({ session, nowMs }: Transaction, row: HotRow): boolean {
  if (row.key_hash === null) return false
  const live = findLiveMarker(session, row.key_hash, nowMs)
  if (live !== undefined && live.job_id !== row.id) return false
  const { id: jobId, key_hash: keyHash, generation, token, fingerprint } = row
  const marker = { keyHash, state: 'in_doubt', jobId, generation, token, fingerprint, result: null, expiresAtMs: null }
  writeMarker(session, { ...marker, state: 'in_doubt' }, nowMs)
  return true
}

function leaveTerminal({ session, nowMs }: Transaction, row: HotRow, burial: Burial): boolean {
  if (burial.terminalForMs === null || row.key_hash === null) return false
  const live = findLiveMarker(session, row.key_hash, nowMs)
  if (live !== undefined && live.job_id !== row.id) return false
  const { id: jobId, key_hash: keyHash, generation, token, fingerprint } = row
  const failure = burial.failure === null ? null : serializeFailure(burial.failure)
  const expiresAtMs = Math.ceil(nowMs + burial.terminalForMs)
  const marker = { keyHash, jobId, generation, token, fingerprint, result: null, failure, expiresAtMs }
  writeMarker(session, { ...marker, state: 'terminal' }, nowMs)
  return true
}

const selectHistory = 'SELECT history FROM chokaq_jobs_hot WHERE rowid = ?'

/** The row's history with one failure more; null where there is nothing to add. */
export function historyWith(
  session: Session,
  row: HotRow,
  failure: StoredFailure | null,
  kind: string,
  atMs: number,
): string | null {
  if (failure === null) return null
  const history = session.get<{ readonly history: string | null }>(selectHistory, row.rowid)?.history ?? null
  return appendHistory(history, { attempt: row.attempt, atMs, kind, failure })
}
