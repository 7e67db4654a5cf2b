/**
 * What operators read. Lists walk an index from the newest row on and stop early: a filter that matches almost nothing
 * reads a bounded number of rows for each page and goes on with the next cursor.
 */
import type { CounterRow } from '../../../core/counters.ts'
import type {
  AuditRow,
  JobFilter,
  JobPage,
  ListRequest,
  MarkerRow,
  MigrationName,
  QueueRow,
  SchemaState,
  WorkerRow,
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

/** The filter as one condition. Every value is bound; only names of columns are text. */
export function conditionsOf(pillar: Pillar, filter: JobFilter): Conditions {
  const { stateColumn } = pillars[pillar]
  const parts: (readonly [sql: string, value: SqlValue | undefined])[] = [
    ['type = ?', filter.type],
    ['queue = ?', filter.queue],
    ['key_hash = ?', filter.keyHash],
    ['instr(key_prefix, ?) = 1', filter.keyPrefix],
    ['EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)', filter.tag],
    [`${stateColumn} = ?`, filter.state],
    [pillar === 'dlq' ? 'reason = ?' : 'NULL = ?', filter.reason],
    [
      pillar === 'dlq' ? '(in_doubt = 1 OR reason = ?)' : 'NULL = ?',
      filter.inReview === true ? 'CompleteConflict' : undefined,
    ],
    ['created_at >= ?', filter.fromMs],
    ['created_at < ?', filter.beforeMs],
  ]
  const set = parts.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]))
  return { sql: ['1', ...set.map(({ sql }) => sql)].join(' AND '), values: set.map(({ value }) => value) }
}

/** Newest first, by creation and id: an order that does not move while rows come and go. */
export function listJobs(session: Session, { pillar, filter, limit, cursor }: ListRequest): JobPage {
  const size = pageSize(limit)
  const { table, columns } = pillars[pillar]
  const { sql, values } = conditionsOf(pillar, filter)
  const from = cursor === undefined ? startOf(filter) : decodeCursor(cursor)
  const key = [from.createdAtMs, from.id, filter.fromMs ?? 0] as const
  const walked = `FROM ${table} INDEXED BY ${table}_newest WHERE (created_at, id) < (?, ?) AND created_at >= ?
    ORDER BY created_at DESC, id DESC`
  // The inner LIMIT bounds what is looked at, the outer one what is returned; SQLite runs the inner one lazily.
  const rows = session.all<JobRow>(
    `SELECT * FROM (SELECT ${columns} ${walked} LIMIT ${maxScannedRows}) WHERE ${sql} LIMIT ?`,
    ...key,
    ...values,
    size + 1,
  )
  const jobs = rows.slice(0, size).map((row) => jobRecord(pillar, row))
  const last = jobs.at(-1)
  if (rows.length > size && last !== undefined) return { jobs, nextCursor: encodeCursor(last) }
  const edge = session.get<{ readonly created_at: number; readonly id: string }>(
    `SELECT created_at, id ${walked} LIMIT 1 OFFSET ${maxScannedRows - 1}`,
    ...key,
  )
  const nextCursor = edge === undefined ? undefined : encodeCursor({ createdAtMs: edge.created_at, id: edge.id })
  return { jobs, nextCursor }
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
const selectDeadCounts = 'SELECT queue, count(*) AS count FROM chokaq_jobs_dlq GROUP BY queue'
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

export function listAudit(
  session: Session,
  { limit, beforeId }: { readonly limit: number; readonly beforeId: number | undefined },
): readonly AuditRow[] {
  return session.all<AuditRow>(
    `SELECT id, at AS atMs, actor, note, act, subject, detail FROM chokaq_audit_log WHERE id < ? ORDER BY id DESC LIMIT ?`,
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
