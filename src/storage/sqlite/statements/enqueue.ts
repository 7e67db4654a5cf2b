/**
 * Into hot. Each job of a batch gets its own verdict inside one transaction: SQLite has one writer, so what a SELECT saw
 * is still true when the INSERT follows, and no savepoint or unique violation is needed to find a duplicate.
 */
import { sameFingerprint } from '../../../core/canonical-json.ts'
import { CounterSum } from '../../../core/counters.ts'
import type { HotState, NewJob } from '../../../core/job.ts'
import type { DeadOnArrival, EnqueueVerdict } from '../../../core/storage.ts'
import { appendHistory } from '../../../core/failure.ts'
import { serializeFailure } from '../../../core/failure.ts'
import { serializeTags } from '../../row-mapping.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../write-transaction.ts'
import { findMarker, isLive, keptPayload, markedFailure, type Marker, newestGeneration } from './markers.ts'

/**
 * enqueue: nowhere -> scheduled | pending
 * Precondition: no hot row has the key, no live marker has it, and the id is new.
 * Returns one verdict per job, in order; a job that is there already changes nothing.
 * Who: any producer.
 */
export function enqueue(tx: Transaction, jobs: readonly NewJob[]): readonly EnqueueVerdict[] {
  const counters = new CounterSum()
  const verdicts = jobs.map((job) =>
    tx.row<EnqueueVerdict>(
      counters,
      (counted) => enqueueOne(tx, job, counted),
      // Two producers that made the same id: the unique index tells, the lookup says whose it is.
      (error) => storedBefore(tx.session, job) ?? { kind: 'refused', error },
    ),
  )
  tx.addCounters(counters)
  return verdicts
}

/** One job of a batch; also how the children of a completed job are stored. Counts what it did. */
export function enqueueOne(tx: Transaction, job: NewJob, counters: CounterSum): EnqueueVerdict {
  // A first call can come late, too: after its repetition was stored and the job is over.
  const known = job.mayExist || hasLeft(tx.session, job) ? storedBefore(tx.session, job) : undefined
  if (known !== undefined) return known
  if (job.key === undefined) return insertCounted(tx, job, 1, counters)

  const marker = findMarker(tx.session, job.key.hash)
  const live = marker !== undefined && isLive(marker, tx.nowMs) ? marker : undefined
  const held = heldByHotRow(tx.session, job, live) ?? heldByMarker(tx.session, job, live)
  if (held === undefined) {
    return insertCounted(tx, job, Math.max(1, newestGeneration(tx.session, job.key.hash, marker)), counters)
  }
  if (held.kind !== 'resent') counters.add('jobs.deduplicated', job, held.kind)
  return held
}

const insertHot = `INSERT INTO chokaq_jobs_hot (id, state, type, queue, priority, run_at, token, generation, attempt,
    failure_count, crash_count, fetch_crash_count, suspect, fast_started, revision, created_at, tenant,
    key_hash, key_prefix, key_scope, key_computed, fingerprint, parent_id, trace_context, tags, payload)
  VALUES (?, ?, ?, ?, ?, ?, 0, ?, 0, 0, 0, 0, 0, 0, 0, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?)`

function insertCounted(tx: Transaction, job: NewJob, generation: number, counters: CounterSum): EnqueueVerdict {
  const runAtMs = dueAtMs(job, tx.nowMs)
  const isReady = runAtMs <= tx.nowMs
  tx.session.run(
    insertHot,
    job.id,
    isReady ? 'pending' : 'scheduled',
    job.type,
    job.queue,
    job.priority,
    runAtMs,
    generation,
    tx.nowMs,
    job.tenant ?? null,
    job.key?.hash ?? null,
    job.key?.prefix ?? null,
    job.key?.scope ?? null,
    job.fingerprint ?? null,
    job.parentId ?? null,
    job.traceContext ?? null,
    serializeTags(job.tags),
    job.payload,
  )
  if (isReady) tx.jobsBecameReady = true
  counters.add('jobs.enqueued', job)
  return { kind: 'inserted' }
}

/** Never before now: a job that is due since last year would overtake everyone and spoil every lag figure. */
function dueAtMs({ due }: NewJob, nowMs: number): number {
  switch (due.kind) {
    case 'now':
      return nowMs
    case 'in':
      return Math.ceil(nowMs + Math.max(0, due.delayMs))
    case 'at':
      return Math.max(nowMs, Math.ceil(due.atMs))
  }
}

interface StoredJob {
  readonly type: string
  readonly payload: string | null
  readonly key_hash: string | null
  readonly key_computed: number
}

const selectStored = ['chokaq_jobs_hot', 'chokaq_jobs_archive', 'chokaq_jobs_dlq']
  .map((table) => `SELECT type, payload, key_hash, key_computed FROM ${table} WHERE id = ?`)
  .join(' UNION ALL ')

const selectLeft = `SELECT EXISTS (SELECT 1 FROM chokaq_jobs_archive WHERE id = ?)
  OR EXISTS (SELECT 1 FROM chokaq_jobs_dlq WHERE id = ?) AS has_left`

/** Whether the id is of a job that is over. That of a hot job is refused by its index. */
function hasLeft(session: Session, { id }: NewJob): boolean {
  return session.get<{ readonly has_left: number }>(selectLeft, id, id)?.has_left === 1
}

/** Whether the id is taken, and by the same job: the answer to a repeated call whose first reply was lost. */
function storedBefore(session: Session, job: NewJob): EnqueueVerdict | undefined {
  const stored = session.get<StoredJob>(selectStored, job.id, job.id, job.id)
  if (stored === undefined) return undefined
  // A worker wrote the key of a raw enqueue; its producer never knew it.
  const storedKey = stored.key_computed === 1 && job.key === undefined ? null : stored.key_hash
  const isStub = stored.payload === null
  const isSame = isStub || (stored.payload === job.payload && storedKey === (job.key?.hash ?? null))
  return stored.type === job.type && isSame ? { kind: 'resent' } : { kind: 'id-reused' }
}

interface Holder {
  readonly id: string
  readonly state: HotState
  readonly fingerprint: string | null
  readonly payload: string
}

const selectHolder = 'SELECT id, state, fingerprint, payload FROM chokaq_jobs_hot WHERE key_hash = ?'

function heldByHotRow(session: Session, job: NewJob, live: Marker | undefined): EnqueueVerdict | undefined {
  const holder = session.get<Holder>(selectHolder, job.key?.hash ?? null)
  if (holder === undefined) return undefined
  if (sameFingerprint(job.fingerprint, holder.fingerprint) === 'different') {
    return { kind: 'key-reused', jobId: holder.id, holderPayload: holder.payload }
  }
  if (holder.id === job.id) return { kind: 'resent' }
  if (live?.state === 'in_doubt' && live.job_id === holder.id) return { kind: 'in-review', jobId: holder.id }
  return { kind: 'active', jobId: holder.id, state: holder.state }
}

function heldByMarker(session: Session, job: NewJob, live: Marker | undefined): EnqueueVerdict | undefined {
  if (live === undefined) return undefined
  const jobId = live.job_id
  if (sameFingerprint(job.fingerprint, live.fingerprint) === 'different') {
    return { kind: 'key-reused', jobId, holderPayload: keptPayload(session, jobId) }
  }
  switch (live.state) {
    case 'completed':
      return { kind: 'completed', jobId, result: live.result }
    case 'in_doubt':
      return { kind: 'in-review', jobId }
    case 'terminal':
      return { kind: 'failed', jobId, failure: markedFailure(session, live) }
    case 'compensated':
      return { kind: 'compensated', jobId }
  }
}

const selectDeadTwin = `SELECT 1 AS found FROM chokaq_jobs_dlq WHERE key_hash = ? AND fingerprint IS ? LIMIT 1`
const insertDead = `INSERT INTO chokaq_jobs_dlq (id, reason, type, queue, priority, run_at, token, generation, attempt,
    failure_count, crash_count, fetch_crash_count, revision, in_doubt, created_at, finished_at, tenant,
    key_hash, key_prefix, key_scope, key_computed, fingerprint, parent_id, duplicate_of, trace_context, tags, payload,
    failure, history)
  VALUES (?, ?, ?, ?, ?, ?, 0, ?, 0, 0, 0, 0, 1, 0, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?)`

/**
 * A job that is dead on arrival: nowhere -> dlq
 * Precondition: no dead row has the same key hash and fingerprint, so that a sender who repeats himself fills one row.
 * Returns whether it was inserted.
 * Who: a receiver of other people's messages, who must keep a conflict for a person.
 */
export function buryOnArrival(tx: Transaction, { job, reason, failure, duplicateOf }: DeadOnArrival): boolean {
  const { session, nowMs } = tx
  const keyHash = job.key?.hash ?? null
  const twin = keyHash === null ? undefined : session.get(selectDeadTwin, keyHash, job.fingerprint ?? null)
  if (twin !== undefined || storedBefore(session, job) !== undefined) return false
  const generation =
    keyHash === null ? 1 : Math.max(1, newestGeneration(session, keyHash, findMarker(session, keyHash)))
  session.run(
    insertDead,
    job.id,
    reason,
    job.type,
    job.queue,
    job.priority,
    dueAtMs(job, nowMs),
    generation,
    nowMs,
    nowMs,
    job.tenant ?? null,
    keyHash,
    job.key?.prefix ?? null,
    job.key?.scope ?? null,
    job.fingerprint ?? null,
    job.parentId ?? null,
    duplicateOf ?? null,
    job.traceContext ?? null,
    serializeTags(job.tags),
    job.payload,
    serializeFailure(failure),
    appendHistory(null, { attempt: 0, atMs: nowMs, kind: reason, failure }),
  )
  const counters = new CounterSum()
  counters.add('jobs.dlq', job, reason)
  tx.addCounters(counters)
  return true
}
