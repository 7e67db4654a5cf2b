/**
 * What operators read. Lists walk an index from the newest row on and stop early: a filter that matches almost nothing
 * reads a bounded number of rows for each page and goes on with the next cursor.
 */
import type { CounterRow } from '../../../core/counters.ts'
import { ChokaQError } from '../../../core/errors.ts'
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
import { migrations } from '../migrations.ts'
import type { Session } from '../session.ts'
import { findMarker } from './markers.ts'
import { isUuid } from './uuid.ts'

const maxPageRows = 500
/** Rows that one page may look at, whatever its filter leaves of them. */
const maxScannedRows = 20_000
/** And one count. */
const maxCountedRows = 20_000
const lowestId = '00000000-0000-0000-0000-000000000000'

const asText: Readonly<Record<string, string>> = {
  id: 'id::text AS id',
  key_hash: `encode(key_hash, 'hex') AS key_hash`,
  parent_id: 'parent_id::text AS parent_id',
  tags: 'array_to_json(tags)::text AS tags',
  payload: 'payload::text AS payload',
}
const common = jobColumns.map((column) => asText[column] ?? column).join(', ')
const finished = 'duplicate_of::text AS duplicate_of, finished_at, result::text AS result'
const pillars: Readonly<
  Record<Pillar, { readonly table: string; readonly columns: string; readonly stateColumn: string }>
> = {
  hot: { table: 'chokaq.jobs_hot', columns: `${common}, state`, stateColumn: 'state' },
  archive: { table: 'chokaq.jobs_archive', columns: `${common}, outcome, ${finished}`, stateColumn: 'outcome' },
  dlq: { table: 'chokaq.jobs_dlq', columns: `${common}, reason, in_doubt, ${finished}`, stateColumn: `'dead'` },
}

export async function getJob(session: Session, jobId: string): Promise<JobRecord | undefined> {
  if (!isUuid(jobId)) return undefined
  for (const pillar of ['hot', 'dlq', 'archive'] as const) {
    const { table, columns } = pillars[pillar]
    const row = await session.get<JobRow>(`SELECT ${columns} FROM ${table} WHERE id = $1`, jobId)
    if (row !== undefined) return jobRecord(pillar, row)
  }
  return undefined
}

export function pageSize(limit: number): number {
  return Number.isFinite(limit) ? Math.min(Math.max(Math.trunc(limit), 1), maxPageRows) : maxPageRows
}

export interface Conditions {
  readonly sql: string
  readonly values: readonly unknown[]
}

const hash = /^[0-9a-f]{64}$/

/** What waits for a person, in the words of its partial index. */
const review = `(in_doubt OR reason = 'CompleteConflict')`

/** The filter as one condition, with `firstParameter` as its first. Every value is bound; only columns are text. */
export function conditionsOf(pillar: Pillar, filter: JobFilter, firstParameter: number): Conditions {
  const { stateColumn } = pillars[pillar]
  const isDead = pillar === 'dlq'
  const duplicateOf = filter.duplicateOf === undefined || isUuid(filter.duplicateOf) ? filter.duplicateOf : lowestId
  const parts: (readonly [sql: string, value: unknown])[] = [
    ['type = ?', filter.type],
    ['queue = ?', filter.queue],
    [`key_hash = decode(?, 'hex')`, filter.keyHash === undefined || hash.test(filter.keyHash) ? filter.keyHash : '00'],
    ['starts_with(key_prefix, ?)', filter.keyPrefix],
    ['? = ANY(tags)', filter.tag],
    [`${stateColumn} = ?`, filter.state],
    [isDead ? 'reason = ?' : 'NULL = ?::text', filter.reason],
    [pillar === 'hot' ? 'NULL = ?::text' : 'duplicate_of = ?::uuid', duplicateOf],
    ['created_at >= ?', filter.fromMs === undefined ? undefined : Math.ceil(filter.fromMs)],
    ['created_at < ?', filter.beforeMs === undefined ? undefined : Math.ceil(filter.beforeMs)],
  ]
  const values: unknown[] = []
  const texts = parts.flatMap(([sql, value]) => {
    if (value === undefined) return []
    values.push(value)
    return [sql.replace('?', `$${firstParameter + values.length - 1}`)]
  })
  if (filter.inReview === true) texts.unshift(isDead ? review : 'false')
  return { sql: texts.length === 0 ? 'true' : texts.join(' AND '), values }
}

/** The way through a table, newest first, with what makes the planner take the index with the fewest rows to look at. */
function walkOf(pillar: Pillar, filter: JobFilter, from: ListPosition): Conditions {
  const { table } = pillars[pillar]
  const { duplicateOf } = filter
  const isOfOne = pillar !== 'hot' && duplicateOf !== undefined
  const narrowed = isOfOne
    ? 'duplicate_of = $4::uuid AND'
    : pillar === 'dlq' && filter.inReview === true
      ? `${review} AND`
      : ''
  const first = isOfOne ? [isUuid(duplicateOf) ? duplicateOf : lowestId] : []
  const isBehind = '(created_at, id) < ($1::bigint, $2::uuid) AND created_at >= $3::bigint'
  const order = (row = ''): string => `ORDER BY ${row}created_at DESC, ${row}id DESC`
  // The index over the newest leaves out what workers own, so that a fetch writes nothing there: that is sorted instead.
  const parts = ['worker_id IS NULL', 'worker_id IS NOT NULL'].map(
    (part) => `(SELECT * FROM ${table} WHERE ${part} AND ${isBehind} ${order()} LIMIT ${maxScannedRows + 1})`,
  )
  return {
    sql:
      pillar === 'hot'
        ? `FROM (${parts.join(' UNION ALL ')}) walk ${order('walk.')}`
        : `FROM ${table} WHERE ${narrowed} ${isBehind} ${order(`${table}.`)}`,
    values: [from.createdAtMs, from.id, Math.ceil(filter.fromMs ?? 0), ...first],
  }
}

/** Newest first, by creation and id: an order that does not move while rows come and go. */
export async function listJobs(session: Session, { pillar, filter, limit, cursor }: ListRequest): Promise<JobPage> {
  const size = pageSize(limit)
  const { columns } = pillars[pillar]
  const walk = walkOf(pillar, filter, cursor === undefined ? startOf(filter) : positionOf(cursor))
  const count = walk.values.length
  const { sql, values } = conditionsOf(pillar, filter, count + 2)
  // The inner LIMIT bounds what is looked at, the outer one what is returned; the inner one runs lazily. The columns are
  // read outside, because a detoasted payload of a row that the filter drops would be for nothing.
  const rows = await session.all<JobRow>(
    `SELECT ${columns} FROM (SELECT * ${walk.sql} LIMIT ${maxScannedRows}) s WHERE ${sql}
      ORDER BY s.created_at DESC, s.id DESC LIMIT $${count + 1}`,
    ...walk.values,
    size + 1,
    ...values,
  )
  const jobs = rows.slice(0, size).map((row) => jobRecord(pillar, row))
  const last = jobs.at(-1)
  if (rows.length > size && last !== undefined) return { jobs, nextCursor: encodeCursor(last) }
  const edge = await session.get<{ readonly created_at: number; readonly id: string }>(
    `SELECT created_at, id::text AS id ${walk.sql} LIMIT 1 OFFSET ${maxScannedRows - 1}`,
    ...walk.values,
  )
  const nextCursor = edge === undefined ? undefined : encodeCursor({ createdAtMs: edge.created_at, id: edge.id })
  return { jobs, nextCursor }
}

/** Counts what a list has, and looks at no more rows than a few pages of it would. */
export async function countJobs(session: Session, { pillar, filter, limit }: CountRequest): Promise<BoundedCount> {
  const walk = walkOf(pillar, filter, startOf(filter))
  const count = walk.values.length
  const { sql, values } = conditionsOf(pillar, filter, count + 2)
  const counted = await session.get<{ readonly count: number }>(
    `SELECT count(*) AS count FROM (SELECT FROM (SELECT * ${walk.sql} LIMIT ${maxCountedRows}) s WHERE ${sql}
      LIMIT $${count + 1}::bigint) c`,
    ...walk.values,
    limit + 1,
    ...values,
  )
  const found = counted?.count ?? 0
  if (found > limit) return { count: limit, isExact: false }
  const more = await session.get(`SELECT 1 AS more ${walk.sql} LIMIT 1 OFFSET ${maxCountedRows}`, ...walk.values)
  return { count: found, isExact: more === undefined }
}

/** Where a list begins: past every row, or at the time before which its filter wants them. */
function startOf(filter: JobFilter): ListPosition {
  return { createdAtMs: Math.ceil(filter.beforeMs ?? Number.MAX_SAFE_INTEGER), id: lowestId }
}

function positionOf(cursor: string): ListPosition {
  const position = decodeCursor(cursor)
  if (isUuid(position.id)) return position
  throw new ChokaQError('CHOKAQ_CURSOR_INVALID', { value: cursor.slice(0, 100) })
}

// Each count comes from a partial index, so neither the archive nor a payload is read. Through the DLQ it goes from queue
// to queue, and no further in one than the limit; what is in doubt waits for people, so there are few.
const selectQueues = `
  WITH RECURSIVE p AS (SELECT queue, count(*) AS n, min(run_at) AS oldest FROM chokaq.jobs_hot WHERE state = 'pending' GROUP BY queue),
  s AS (SELECT queue, count(*) AS n FROM chokaq.jobs_hot WHERE state = 'scheduled' GROUP BY queue),
  o AS (SELECT queue, count(*) AS n, count(*) FILTER (WHERE state = 'processing') AS running FROM chokaq.jobs_hot
    WHERE worker_id IS NOT NULL GROUP BY queue),
  dq AS (
    (SELECT queue FROM chokaq.jobs_dlq WHERE NOT in_doubt ORDER BY queue LIMIT 1)
    UNION ALL SELECT (SELECT d.queue FROM chokaq.jobs_dlq d WHERE NOT d.in_doubt AND d.queue > dq.queue
      ORDER BY d.queue LIMIT 1) FROM dq WHERE dq.queue IS NOT NULL),
  dn AS (
    SELECT dq.queue, (SELECT count(*) FROM (SELECT FROM chokaq.jobs_dlq d WHERE NOT d.in_doubt AND d.queue = dq.queue
      LIMIT ${maxDeadCount}) c) AS n FROM dq WHERE dq.queue IS NOT NULL
    UNION ALL SELECT r.queue, count(*) FROM (SELECT queue FROM chokaq.jobs_dlq WHERE ${review} AND in_doubt
      LIMIT ${maxDeadCount}) r GROUP BY r.queue),
  d AS (SELECT queue, least(sum(n), ${maxDeadCount})::bigint AS n FROM dn GROUP BY queue),
  names AS (SELECT queue FROM p UNION SELECT queue FROM s UNION SELECT queue FROM o UNION SELECT queue FROM d
    UNION SELECT name FROM chokaq.queues)
  SELECT names.queue AS name, coalesce(q.paused, false) AS paused, q.max_concurrency, coalesce(s.n, 0) AS scheduled,
    coalesce(p.n, 0) AS pending, coalesce(o.n, 0) - coalesce(o.running, 0) AS fetched,
    coalesce(o.running, 0) AS processing, coalesce(d.n, 0) AS dead, p.oldest, chokaq.now_ms() AS now
  FROM names LEFT JOIN p ON p.queue = names.queue LEFT JOIN s ON s.queue = names.queue
  LEFT JOIN o ON o.queue = names.queue LEFT JOIN d ON d.queue = names.queue
  LEFT JOIN chokaq.queues q ON q.name = names.queue`

interface QueueColumns {
  readonly name: string
  readonly paused: number
  readonly max_concurrency: number | null
  readonly scheduled: number
  readonly pending: number
  readonly fetched: number
  readonly processing: number
  readonly dead: number
  readonly oldest: number | null
  readonly now: number
}

/** Every queue that has rows or settings. */
export async function listQueues(session: Session): Promise<readonly QueueRow[]> {
  const rows = await session.all<QueueColumns>(selectQueues)
  return [...rows]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((row) => ({
      name: row.name,
      paused: row.paused === 1,
      maxConcurrency: row.max_concurrency ?? undefined,
      scheduledCount: row.scheduled,
      pendingCount: row.pending,
      fetchedCount: row.fetched,
      processingCount: row.processing,
      deadCount: row.dead,
      lagMs: row.oldest === null ? undefined : Math.max(0, row.now - row.oldest),
    }))
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

export async function listWorkers(session: Session): Promise<readonly WorkerRow[]> {
  const rows = await session.all<WorkerColumns>('SELECT * FROM chokaq.workers ORDER BY started_at, id')
  return rows.map((row) => ({
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

export async function listJobTypes(session: Session): Promise<readonly JobTypeRow[]> {
  const rows = await session.all<JobTypeColumns>('SELECT * FROM chokaq.job_types ORDER BY type')
  return rows.map((row) => ({
    type: row.type,
    queue: row.queue,
    keyed: row.keyed === 1,
    keyScope: row.key_scope,
    allowRaw: row.allow_raw === 1,
    answers: row.answers,
    payloadSchema: row.payload_schema,
  }))
}

export async function listAudit(
  session: Session,
  { limit, beforeId, subject }: AuditRequest,
): Promise<readonly AuditRow[]> {
  const about = subject === undefined ? [] : [subject]
  return session.all<AuditRow>(
    `SELECT id, at AS "atMs", actor, note, act, subject, detail FROM chokaq.audit_log WHERE id < $1
      ${subject === undefined ? '' : 'AND left(subject, 100) = left($3, 100) AND subject = $3'} ORDER BY id DESC LIMIT $2`,
    beforeId ?? Number.MAX_SAFE_INTEGER,
    pageSize(limit),
    ...about,
  )
}

/** The totals, and what was counted since they were added up: one statement, so nothing is missed or seen twice. */
export async function listStats(session: Session): Promise<readonly CounterRow[]> {
  return session.all<CounterRow>(
    `SELECT name, queue, type, label, sum(value)::bigint AS value FROM (
        SELECT name, queue, type, label, value FROM chokaq.stats_totals
        UNION ALL SELECT name, queue, type, label, value FROM chokaq.worker_counters
        WHERE name NOT IN ('duration', 'lag')) s
      GROUP BY 1, 2, 3, 4 HAVING sum(value) <> 0 ORDER BY 1, 2, 3, 4`,
  )
}

export async function readSchema(session: Session): Promise<SchemaState> {
  const applied = await session.all<MigrationName>('SELECT version, name FROM chokaq.migrations ORDER BY version')
  return { applied, known: migrationNames(migrations) }
}

export async function getMarker(session: Session, keyHash: string): Promise<MarkerRow | undefined> {
  const marker = await findMarker(session, keyHash)
  if (marker === undefined) return undefined
  const { state, generation, fingerprint, result } = marker
  const expiresAtMs = marker.expires_at ?? undefined
  return { keyHash, state, jobId: marker.job_id, generation, fingerprint, result, expiresAtMs }
}
