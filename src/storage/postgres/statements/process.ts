/** Liveness of a worker, and what its types say of themselves. */
import { leaseId, type Lease } from '../../../core/lease.ts'
import type { BeatRequest, BeatVerdict, JobTypeRow, WorkerInfo } from '../../../core/storage.ts'
import type { Transaction } from '../transactions.ts'
import { Endings, hotRowColumns, lockRows } from './leave-hot.ts'
import { undoFastStart } from './settle-rest.ts'

const upsertWorker = `INSERT INTO chokaq.workers AS w (id, name, identity, queues, types, concurrency, running_count,
    buffered_count, beat, started_at, beat_at)
  SELECT $1, $2, $3, $4, $5, $6::integer, 0, 0, 1, c.now, c.now FROM (SELECT chokaq.now_ms() AS now) c
  ON CONFLICT (id) DO UPDATE SET name = excluded.name, identity = excluded.identity, queues = excluded.queues,
    types = excluded.types, concurrency = excluded.concurrency, beat = w.beat + 1, beat_at = excluded.beat_at`

/** registerWorker: the row that says the worker lives. Who: the worker, before its first fetch and after `unknown`. */
export async function registerWorker({ session }: Transaction, info: WorkerInfo): Promise<void> {
  const { id, name, identity, queues, types, concurrency } = info
  const texts = [JSON.stringify(identity), JSON.stringify(queues), JSON.stringify(types)] as const
  await session.all(upsertWorker, id, name, ...texts, concurrency)
}

// One row at least while the worker's own row is there.
const beatText = (owns: string): string => `
  WITH u AS (UPDATE chokaq.workers SET beat = beat + 1, beat_at = chokaq.now_ms(), concurrency = $2, running_count = $3,
    buffered_count = $4 WHERE id = $1 RETURNING id, beat_at)
  SELECT h.id::text AS id, u.beat_at AS at_ms, ${owns} AS owns
  FROM u LEFT JOIN chokaq.jobs_hot h ON h.cancel_requested_at IS NOT NULL AND h.worker_id = u.id
  ORDER BY h.id`
const beat = beatText('0')
const beatAndLook = beatText('(EXISTS (SELECT FROM chokaq.jobs_hot o WHERE o.worker_id = u.id))::int')

interface BeatRow {
  readonly id: string | null
  readonly at_ms: number
  readonly owns: number
}

/**
 * heartbeat: moves the counter and tells which of the worker's jobs are to be cancelled. Whether it owns any is looked up
 * only on request: that reads past the dead rows, see dead-walk.ts. Who: the worker.
 */
export async function heartbeat(
  { session }: Transaction,
  request: BeatRequest,
  { isLook }: { readonly isLook: boolean },
): Promise<BeatVerdict> {
  const { workerId, concurrency, runningCount, bufferedCount } = request
  const rows = await session.all<BeatRow>(
    isLook ? beatAndLook : beat,
    workerId,
    concurrency,
    runningCount,
    bufferedCount,
  )
  const [first] = rows
  if (first === undefined) return { kind: 'unknown' }
  const cancelRequested = rows.flatMap(({ id }) => (id === null ? [] : [id]))
  return { kind: 'alive', cancelRequested, ownsJobs: first.owns === 1, atMs: first.at_ms }
}

export interface DisownRequest {
  readonly workerId: string
  readonly inHand: readonly Lease[]
  readonly fetchedBeforeMs: number
}

const selectOwnedBefore = `SELECT h.id::text AS id, h.token FROM chokaq.jobs_hot h
  WHERE h.worker_id = $1 AND h.fetched_at < $2::bigint ORDER BY h.id`
const lockOwned = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now)
  SELECT ${hotRowColumns} FROM chokaq.jobs_hot h CROSS JOIN c
  WHERE h.id = ANY($1::uuid[]) AND h.token = ANY($2::bigint[]) AND h.worker_id = $3
  ORDER BY h.id FOR UPDATE OF h SKIP LOCKED`

/** The leases that its worker does not know. Read without locks: on most beats there are none. */
export async function unknownLeases({ session }: Transaction, request: DisownRequest): Promise<readonly Lease[]> {
  const { workerId, inHand, fetchedBeforeMs } = request
  const rows = await session.all<{ readonly id: string; readonly token: number }>(
    selectOwnedBefore,
    workerId,
    Math.floor(fetchedBeforeMs),
  )
  const known = new Set(inHand.map(leaseId))
  return rows.map(({ id, token }) => ({ jobId: id, token })).filter((lease) => !known.has(leaseId(lease)))
}

/**
 * disown: fetched | processing -> pending, as release and with a new token
 * Precondition: owned by the caller, not in its hands, fetched before `fetchedBeforeMs`.
 * Returns how many went back. Nothing is charged: the reply of the fetch was lost, so no handler ran.
 * Who: the owner, with each beat.
 */
export async function disown(tx: Transaction, workerId: string, leases: readonly Lease[]): Promise<number> {
  const ids = leases.map(({ jobId }) => jobId)
  const tokens = leases.map(({ token }) => token)
  const rows = await lockRows(tx.session, lockOwned, ids, tokens, workerId)
  const endings = new Endings()
  for (const row of rows) endings.wait(row, { ...undoFastStart(row), raise: true })
  await endings.write(tx)
  return rows.length
}

/** retireWorker: a worker that has settled all it had says good-bye. What it left nevertheless is rescued. */
export async function retireWorker({ session }: Transaction, workerId: string): Promise<void> {
  await session.all('DELETE FROM chokaq.workers WHERE id = $1', workerId)
}

const upsertJobTypes = `INSERT INTO chokaq.job_types
    (type, queue, keyed, key_scope, allow_raw, answers, payload_schema, updated_at)
  SELECT DISTINCT ON (r.type) r.type, r.queue, r.keyed, r.key_scope, r.allow_raw, r.answers, r.payload_schema, c.now
  FROM json_to_recordset($1::text::json) AS r(n integer, type text, queue text, keyed boolean, key_scope text,
    allow_raw boolean, answers text, payload_schema text), (SELECT chokaq.now_ms() AS now) c
  ORDER BY r.type, r.n DESC
  ON CONFLICT (type) DO UPDATE SET queue = excluded.queue, keyed = excluded.keyed, key_scope = excluded.key_scope,
    allow_raw = excluded.allow_raw, answers = excluded.answers, payload_schema = excluded.payload_schema,
    updated_at = excluded.updated_at`

/** saveJobTypes: the newest worker's answers win. Who: a worker at start. */
export async function saveJobTypes({ session }: Transaction, rows: readonly JobTypeRow[]): Promise<void> {
  const values = rows.map((row, n) => ({
    n,
    type: row.type,
    queue: row.queue,
    keyed: row.keyed,
    key_scope: row.keyScope,
    allow_raw: row.allowRaw,
    answers: row.answers,
    payload_schema: row.payloadSchema,
  }))
  await session.all(upsertJobTypes, JSON.stringify(values))
}
