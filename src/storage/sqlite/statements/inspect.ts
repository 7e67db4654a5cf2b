/**
 * What operators read. Lists walk an index from the newest row on and stop early: a filter that matches almost nothing
 * reads a bounded number of rows for each page and goes on with the next cursor.
 */
import type { CounterRow } from '../../../core/counters.ts'
import {
  type AuditRequest,
  type AuditRow,
  type BoundedCount,
  type CountRequest,
  type JobFilter,
  type JobPage,
  type ListRequest,
  type MarkerRow,
  maxDeadCount,
  type MigrationName,
  type QueueRow,
  type SchemaState,
  type WorkerRow,
} from '../../../core/inspector.ts'
import type { JobRecord, Pillar } from '../../../core/job.ts'
import type { ProcessIdentity } from '../../../core/runtime.ts'
import type { JobTypeRow } from '../../../core/storage.ts'
import { decodeCursor, encodeCursor, type ListPosition } from '../../cursor.ts'
import { jobColumns, jobRecord, type JobRow, parseTexts } from '../../row-mapping.ts'
import { migrationNames } from '../../migration.ts'
import type { SqlValue } from '../database.ts'
import { migrations } from '../migrations.ts'
import type { Session } from '../session.ts'
import { findMarker } from './markers.ts'

const maxPageRows = 500
/** Rows that one page may look at, whatever its filter leaves of them. */
const maxScannedRows = 20_000
/** And one count. */
const maxCountedRows = 20_000

const common = jobColumns.join(', ')
const pillars: Readonly<
  Record<Pillar, { readonly table: string; readonly columns: string; readonly stateColumn: string }>
> = {
  hot: { table: 'chokaq_jobs_hot', columns: `${common}, state`, stateColumn: 'state' },
  archive: {
    table: 'chokaq_jobs_archive',
    columns: `${common}, outcome, duplicate_of, finished_at, result`,
    stateColumn: 'outcome',
  },
  dlq: {
    table: 'chokaq_jobs_dlq',
    columns: `${common}, reason, in_doubt, duplicate_of, finished_at, result`,
    stateColumn: `'dead'`,
  },
}

export function getJob(session: Session, jobId: string): JobRecord | undefined {
  for (const pillar of ['hot', 'dlq', 'archive'] as const) {
    const { table, columns } = pillars[pillar]
    const row = session.get<JobRow>(`SELECT ${columns} FROM ${table} WHERE id = ?`, jobId)
    if (row !== undefined) return jobRecord(pillar, row)
  }
  return undefined
}

export function pageSize(limit: number): number {
  return Number.isFinite(limit) ? Math.min(Math.max(Math.trunc(limit), 1), maxPageRows) : maxPageRows
}

export interface Conditions {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

/** What waits for a person, in the words of its partial index. */
const review = `(in_doubt = 1 OR reason = 'CompleteConflict')`

/** The filter as one condition. Every value is bound; only names of columns are text. */
export function conditionsOf(pillar: Pillar, filter: JobFilter): Conditions {
  const { stateColumn } = pillars[pillar]
  const isDead = pillar === 'dlq'
  const parts: (readonly [sql: string, value: SqlValue | undefined])[] = [
    ['type = ?', filter.type],
    ['queue = ?', filter.queue],
    ['key_hash = ?', filter.keyHash],
    ['instr(key_prefix, ?) = 1', filter.keyPrefix],
    ['EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)', filter.tag],
    [`${stateColumn} = ?`, filter.state],
    [isDead ? 'reason = ?' : 'NULL = ?', filter.reason],
    [pillar === 'hot' ? 'NULL = ?' : 'duplicate_of = ?', filter.duplicateOf],
    ['created_at >= ?', filter.fromMs],
    ['created_at < ?', filter.beforeMs],
  ]
  const set = parts.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]))
  const inReview = filter.inReview === true ? [isDead ? review : 'NULL'] : []
  return {
    sql: ['1', ...inReview, ...set.map(({ sql }) => sql)].join(' AND '),
    values: set.map(({ value }) => value),
  }
}

/** The way through a table, newest first: by the index that has the fewest rows to look at. */
function walkOf(pillar: Pillar, filter: JobFilter, from: ListPosition): Conditions {
  const { table } = pillars[pillar]
  const [index, narrowed, first] =
    pillar !== 'hot' && filter.duplicateOf !== undefined
      ? ['duplicate', 'duplicate_of = ? AND', [filter.duplicateOf]]
      : pillar === 'dlq' && filter.inReview === true
        ? ['review', `${review} AND`, []]
        : ['newest', '', []]
  return {
    sql: `FROM ${table} INDEXED BY ${table}_${index} WHERE ${narrowed} (created_at, id) < (?, ?) AND created_at >= ?
    ORDER BY created_at DESC, id DESC`,
    values: [...first, from.createdAtMs, from.id, filter.fromMs ?? 0],
  }
}

/** Newest first, by creation and id: an order that does not move while rows come and go. */
export function listJobs(session: Session, { pillar, filter, limit, cursor }: ListRequest): JobPage {
  const size = pageSize(limit)
  const { columns } = pillars[pillar]
  const { sql, values } = conditionsOf(pillar, filter)
  const walk = walkOf(pillar, filter, cursor === undefined ? startOf(filter) : decodeCursor(cursor))
  // The inner LIMIT bounds what is looked at, the outer one what is returned; SQLite runs the inner one lazily.
  const rows = session.all<JobRow>(
    `SELECT * FROM (SELECT ${columns} ${walk.sql} LIMIT ${maxScannedRows}) WHERE ${sql} LIMIT ?`,
    ...walk.values,
    ...values,
    size + 1,
  )
  const jobs = rows.slice(0, size).map((row) => jobRecord(pillar, row))
  const last = jobs.at(-1)
  if (rows.length > size && last !== undefined) return { jobs, nextCursor: encodeCursor(last) }
  const edge = session.get<{ readonly created_at: number; readonly id: string }>(
    `SELECT created_at, id ${walk.sql} LIMIT 1 OFFSET ${maxScannedRows - 1}`,
    ...walk.values,
  )
  const nextCursor = edge === undefined ? undefined : encodeCursor({ createdAtMs: edge.created_at, id: edge.id })
  return { jobs, nextCursor }
}

/** Counts what a list has, and looks at no more rows than a few pages of it would. */
export function countJobs(session: Session, { pillar, filter, limit }: CountRequest): BoundedCount {
  const { stateColumn } = pillars[pillar]
  const { sql, values } = conditionsOf(pillar, filter)
  const walk = walkOf(pillar, filter, startOf(filter))
  // Without a payload, so that rows with long ones are not read to their end.
  const columns = [
    'created_at, type, queue, key_hash, key_prefix, tags',
    ...(pillar === 'hot' ? [] : ['duplicate_of']),
    ...(pillar === 'dlq' ? ['reason, in_doubt'] : [stateColumn]),
  ].join(', ')
  const counted = session.get<{ readonly count: number }>(
    `SELECT count(*) AS count FROM (SELECT 1 FROM (SELECT ${columns} ${walk.sql} LIMIT ${maxCountedRows}) WHERE ${sql} LIMIT ?)`,
    ...walk.values,
    ...values,
    limit + 1,
  )
  const count = counted?.count ?? 0
  if (count > limit) return { count: limit, isExact: false }
  const more = session.get(`SELECT 1 ${walk.sql} LIMIT 1 OFFSET ${maxCountedRows}`, ...walk.values)
  return { count, isExact: more === undefined }
}

/** Where a list begins: past every row, or at the time before which its filter wants them. */
function startOf(filter: JobFilter): ListPosition {
  return { createdAtMs: Math.ceil(filter.beforeMs ?? Number.MAX_SAFE_INTEGER), id: '' }
}

interface QueueCounts {
  readonly queue: string
  readonly count: number
}

const selectPendingCounts = `SELECT queue, count(*) AS count, min(run_at) AS oldest FROM chokaq_jobs_hot
  INDEXED BY chokaq_jobs_hot_pending WHERE state = 'pending' GROUP BY queue`
const selectScheduledCounts = `SELECT queue, count(*) AS count FROM chokaq_jobs_hot
  INDEXED BY chokaq_jobs_hot_scheduled WHERE state = 'scheduled' GROUP BY queue`
const selectOwnedCounts = `SELECT queue, count(*) AS count, sum(state = 'processing') AS processing FROM chokaq_jobs_hot
  INDEXED BY chokaq_jobs_hot_owned WHERE worker_id IS NOT NULL GROUP BY queue`
// From queue to queue through an index, and no further in one than the limit: the DLQ may be long. What is in doubt is in
// the index of reviews, and waits for people, so there are few.
const selectDeadCounts = `WITH RECURSIVE q(queue) AS (
    SELECT min(queue) FROM chokaq_jobs_dlq INDEXED BY chokaq_jobs_dlq_finished WHERE in_doubt = 0
    UNION ALL SELECT (SELECT min(d.queue) FROM chokaq_jobs_dlq d INDEXED BY chokaq_jobs_dlq_finished
      WHERE d.in_doubt = 0 AND d.queue > q.queue) FROM q WHERE q.queue IS NOT NULL),
  n(queue, count) AS (
    SELECT q.queue, (SELECT count(*) FROM (SELECT 1 FROM chokaq_jobs_dlq d INDEXED BY chokaq_jobs_dlq_finished
      WHERE d.in_doubt = 0 AND d.queue = q.queue LIMIT ${maxDeadCount})) FROM q WHERE q.queue IS NOT NULL
    UNION ALL SELECT queue, count(*) FROM (SELECT queue FROM chokaq_jobs_dlq INDEXED BY chokaq_jobs_dlq_review
      WHERE ${review} AND in_doubt = 1 LIMIT ${maxDeadCount}) GROUP BY queue)
  SELECT queue, min(sum(count), ${maxDeadCount}) AS count FROM n GROUP BY queue`
const selectSettings = 'SELECT name, paused, max_concurrency FROM chokaq_queues'

/** Every queue that has rows or settings. The counts come from partial indexes, so the archive costs nothing. */
export function listQueues(session: Session, nowMs: number): readonly QueueRow[] {
  const byQueue = <R extends QueueCounts>(sql: string): ReadonlyMap<string, R> =>
    new Map(session.all<R>(sql).map((row) => [row.queue, row]))
  const pending = byQueue<QueueCounts & { readonly oldest: number }>(selectPendingCounts)
  const scheduled = byQueue(selectScheduledCounts)
  const owned = byQueue<QueueCounts & { readonly processing: number }>(selectOwnedCounts)
  const dead = byQueue(selectDeadCounts)
  const settings = new Map(
    session
      .all<{ readonly name: string; readonly paused: number; readonly max_concurrency: number | null }>(selectSettings)
      .map((row) => [row.name, row]),
  )
  const names = [...new Set([pending, scheduled, owned, dead, settings].flatMap((rows) => [...rows.keys()]))].sort()
  return names.map((name) => {
    const processingCount = owned.get(name)?.processing ?? 0
    const oldest = pending.get(name)?.oldest
    return {
      name,
      paused: settings.get(name)?.paused === 1,
      maxConcurrency: settings.get(name)?.max_concurrency ?? undefined,
      scheduledCount: scheduled.get(name)?.count ?? 0,
      pendingCount: pending.get(name)?.count ?? 0,
      fetchedCount: (owned.get(name)?.count ?? 0) - processingCount,
      processingCount,
      deadCount: dead.get(name)?.count ?? 0,
      lagMs: oldest === undefined ? undefined : Math.max(0, nowMs - oldest),
    }
  })
}

interface WorkerColumns {
  readonly id: string
  readonly name: string
  readonly identity: string
  readonly queues: string
  readonly types: string
  readonly concurrency: number
  readonly running_count: number
  readonly buffered_count: number
  readonly beat: number
  readonly started_at: number
  readonly beat_at: number
}

export function listWorkers(session: Session): readonly WorkerRow[] {
  return session.all<WorkerColumns>('SELECT * FROM chokaq_workers ORDER BY started_at, id').map((row) => ({
    id: row.id,
    name: row.name,
    identity: JSON.parse(row.identity) as ProcessIdentity,
    queues: parseTexts(row.queues),
    types: parseTexts(row.types),
    concurrency: row.concurrency,
    beat: row.beat,
    startedAtMs: row.started_at,
    beatAtMs: row.beat_at,
    runningCount: row.running_count,
    bufferedCount: row.buffered_count,
  }))
}

interface JobTypeColumns {
  readonly type: string
  readonly queue: string
  readonly keyed: number
  readonly key_scope: string
  readonly allow_raw: number
  readonly answers: string
  readonly payload_schema: string | null
}

export function listJobTypes(session: Session): readonly JobTypeRow[] {
  return session.all<JobTypeColumns>('SELECT * FROM chokaq_job_types ORDER BY type').map((row) => ({
    type: row.type,
    queue: row.queue,
    keyed: row.keyed === 1,
    keyScope: row.key_scope,
    allowRaw: row.allow_raw === 1,
    answers: row.answers,
    payloadSchema: row.payload_schema,
  }))
}

export function listAudit(session: Session, { limit, beforeId, subject }: AuditRequest): readonly AuditRow[] {
  const about = subject === undefined ? [] : [subject]
  return session.all<AuditRow>(
    `SELECT id, at AS atMs, actor, note, act, subject, detail FROM chokaq_audit_log
      WHERE ${subject === undefined ? '' : 'subject = ? AND'} id < ? ORDER BY id DESC LIMIT ?`,
    ...about,
    beforeId ?? Number.MAX_SAFE_INTEGER,
    pageSize(limit),
  )
}

export function listStats(session: Session): readonly CounterRow[] {
  return session.all<CounterRow>(
    'SELECT name, queue, type, label, value FROM chokaq_stats_totals ORDER BY name, queue, type, label',
  )
}

export function readSchema(session: Session): SchemaState {
  const applied = session.all<MigrationName>('SELECT version, name FROM chokaq_migrations ORDER BY version')
  return { applied, known: migrationNames(migrations) }
}

export function getMarker(session: Session, keyHash: string): MarkerRow | undefined {
  const marker = findMarker(session, keyHash)
  if (marker === undefined) return undefined
  const { state, generation, fingerprint, result } = marker
  const expiresAtMs = marker.expires_at ?? undefined
  return { keyHash, state, jobId: marker.job_id, generation, fingerprint, result, expiresAtMs }
}
