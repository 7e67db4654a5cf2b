/**
 * From pending to a worker's hands.
 *
 * How a fetch finds its rows. The order within a queue is priority (high first), then due time, then id, and a worker
 * takes only the types it registered. One index over (queue, priority, run_at, id) with `type IN (…)` as a filter gives
 * that order as long as most rows match; but jobs of a type that no worker here knows (a rolled-back deploy) stand in
 * front of everyone and are read again by every fetch: 300,000 of them cost 57 ms each time, and still 30 ms with the
 * type inside the index. So the index is (queue, type, priority DESC, run_at, id) and there is one ordered probe per
 * type, 0.02 ms each. A worker with one type needs nothing more. For several, the heads of the types are merged here,
 * from index columns alone; since what is taken of one type is always the front of that type, the rows themselves are
 * then read in the same order, one statement per type. A UNION ALL of limited subqueries does the same merge inside
 * SQLite, but reads `limit` entries of every type first (three times as long for three types) and is a new statement
 * for every set of types.
 *
 * A pending row is due: enqueue, retry and promote see to that. So fetch does not compare run_at with the clock, and a
 * clock that steps back hides no job.
 */
import { CounterSum } from '../../../core/counters.ts'
import { sameFingerprint } from '../../../core/canonical-json.ts'
import type { FetchedJob } from '../../../core/job.ts'
import { histogramLabel } from '../../../core/metrics.ts'
import type { BusyQueuesRequest, ClaimRequest, ClaimVerdict, FetchRequest, TypePolicy } from '../../../core/storage.ts'
import { fetchedJob, type FetchableRow } from '../../row-mapping.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../write-transaction.ts'
import { findLiveMarker } from './markers.ts'

const selectQueue = 'SELECT paused, max_concurrency FROM chokaq_queues WHERE name = ?'
const countOwned = 'SELECT count(*) AS owned FROM chokaq_jobs_hot WHERE worker_id IS NOT NULL AND queue = ?'

interface QueueLimits {
  readonly paused: number
  readonly max_concurrency: number | null
}

interface PendingRow extends FetchableRow {
  readonly queue: string
  readonly run_at: number
  readonly crash_count: number
  readonly rowid: number
  readonly cancel_requested_at: number | null
}

const pendingOfType = `FROM chokaq_jobs_hot INDEXED BY chokaq_jobs_hot_pending
  WHERE state = 'pending' AND queue = ? AND type = ? ORDER BY priority DESC, run_at, id LIMIT ?`
const selectHeads = `SELECT priority, run_at, id ${pendingOfType} OFFSET ?`
const selectPending = `SELECT rowid, id, type, queue, priority, run_at, generation, attempt, failure_count, crash_count,
  suspect, created_at, first_started_at, cancel_requested_at, tenant, key_hash, key_prefix, key_scope, fingerprint,
  trace_context, tags, payload ${pendingOfType}`
type Nullable = string | null
type PendingTuple = readonly [
  ...identity: [rowid: number, id: string, type: string, queue: string],
  ...order: [priority: number, runAt: number, generation: number],
  ...counts: [attempt: number, failures: number, crashes: number, suspect: number],
  ...times: [createdAt: number, firstStartedAt: number | null, cancelRequestedAt: number | null],
  ...key: [tenant: Nullable, hash: Nullable, prefix: Nullable, scope: Nullable, fingerprint: Nullable],
  ...texts: [traceContext: Nullable, tags: Nullable, payload: string],
]

function pendingRow(row: PendingTuple): PendingRow {
  return {
    rowid: row[0],
    id: row[1],
    type: row[2],
    queue: row[3],
    priority: row[4],
    run_at: row[5],
    generation: row[6],
    attempt: row[7],
    failure_count: row[8],
    crash_count: row[9],
    suspect: row[10],
    created_at: row[11],
    first_started_at: row[12],
    cancel_requested_at: row[13],
    tenant: row[14],
    key_hash: row[15],
    key_prefix: row[16],
    key_scope: row[17],
    fingerprint: row[18],
    trace_context: row[19],
    tags: row[20],
    payload: row[21],
  }
}

function readPending(session: Session, queue: string, type: string, count: number): PendingRow[] {
  return session.tuples<PendingTuple>(selectPending).all(queue, type, count).map(pendingRow)
}

const selectAnyPending = `SELECT 1 AS found FROM chokaq_jobs_hot INDEXED BY chokaq_jobs_hot_pending
  WHERE state = 'pending' AND queue = ? AND type = ? LIMIT 1`

/** Whether a fetch would find a row: looked up without a transaction, so that an idle worker takes no write lock. */
export function hasPending(session: Session, { queue, policies }: FetchRequest): boolean {
  return policies.some(({ type }) => session.get(selectAnyPending, queue, type) !== undefined)
}

/** The queues that have something pending of the types, paused ones too. */
export function busyQueues(session: Session, { queues, types }: BusyQueuesRequest): readonly string[] {
  return queues.filter((queue) => types.some((type) => session.get(selectAnyPending, queue, type) !== undefined))
}

const policiesByType = new WeakMap<readonly TypePolicy[], ReadonlyMap<string, TypePolicy>>()

function policyMap(policies: readonly TypePolicy[]): ReadonlyMap<string, TypePolicy> {
  const known = policiesByType.get(policies)
  if (known !== undefined) return known
  const made = new Map(policies.map((policy) => [policy.type, policy]))
  policiesByType.set(policies, made)
  return made
}

/**
 * fetch: pending -> fetched, or -> processing where the fetch itself may start the row (fast start)
 * Precondition: the queue is not paused and below its limit, counting fetched and processing rows of all workers.
 * Returns the jobs in the order of the queue, each with a new token.
 * Who: a worker that registered the types.
 */
export function fetch(tx: Transaction, request: FetchRequest): readonly FetchedJob[] {
  const { session } = tx
  const limit = allowedCount(session, request)
  if (limit <= 0) return []
  const rows = nextRows(session, request, limit)
  if (rows.length === 0) return []
  const policies = policyMap(request.policies)
  const counters = new CounterSum()
  let token = session.reserveTokens(rows.length)
  const jobs: FetchedJob[] = []
  for (const row of rows) {
    const policy = policies.get(row.type)
    if (policy === undefined) continue
    jobs.push(takeRow(tx, row, token, policy, request.workerId, counters))
    token += 1
  }
  tx.addCounters(counters)
  return jobs
}

function allowedCount(session: Session, { queue, limit }: FetchRequest): number {
  const limits = session.get<QueueLimits>(selectQueue, queue)
  if (limits === undefined) return limit
  if (limits.paused === 1) return 0
  if (limits.max_concurrency === null) return limit
  const owned = session.get<{ readonly owned: number }>(countOwned, queue)?.owned ?? 0
  return Math.min(limit, limits.max_concurrency - owned)
}

function nextRows(session: Session, { queue, policies }: FetchRequest, limit: number): readonly PendingRow[] {
  const [only] = policies
  if (only === undefined) return []
  if (policies.length === 1) return readPending(session, queue, only.type, limit)
  const order = mergeHeads(session, queue, policies, limit)
  const counts = new Map<string, number>()
  for (const type of order) counts.set(type, (counts.get(type) ?? 0) + 1)
  const fronts = new Map([...counts].map(([type, count]) => [type, readPending(session, queue, type, count).values()]))
  return order.flatMap((type) => fronts.get(type)?.next().value ?? [])
}

type Head = readonly [priority: number, runAt: number, id: string]

/** The order of the index: SQLite compares texts as UTF-8, which for ids is the order of their characters. */
function compareHeads(a: Head, b: Head): number {
  return b[0] - a[0] || a[1] - b[1] || (a[2] < b[2] ? -1 : a[2] > b[2] ? 1 : 0)
}

/** One type's index entries, read in steps that grow. */
interface Lane {
  readonly type: string
  head: Head
  heads: readonly Head[]
  next: number
  readCount: number
}

const firstStep = 4

/** The types of the first `limit` rows of all, in their order. `line` is sorted by what each lane offers next. */
function mergeHeads(
  session: Session,
  queue: string,
  policies: readonly TypePolicy[],
  limit: number,
): readonly string[] {
  const select = session.tuples<Head>(selectHeads)
  const step = Math.min(limit, Math.max(firstStep, Math.ceil(limit / policies.length)))
  const line: Lane[] = []
  for (const { type } of policies) {
    const heads = select.all(queue, type, step, 0)
    const [head] = heads
    if (head !== undefined) line.push({ type, head, heads, next: 1, readCount: heads.length })
  }
  line.sort((a, b) => compareHeads(a.head, b.head))
  const order: string[] = []
  for (let lane = line.shift(); lane !== undefined; lane = line.shift()) {
    order.push(lane.type)
    if (order.length === limit) break
    if (lane.next === lane.heads.length && lane.heads.length > 0) {
      lane.heads = select.all(queue, lane.type, Math.min(limit, lane.readCount * 3), lane.readCount)
      lane.readCount += lane.heads.length
      lane.next = 0
    }
    const head = lane.heads[lane.next]
    if (head === undefined) continue
    lane.next += 1
    lane.head = head
    line.splice(placeOf(head, line), 0, lane)
  }
  return order
}

/** Where a head belongs in a sorted line. */
function placeOf(head: Head, line: readonly Lane[]): number {
  let low = 0
  let high = line.length
  while (low < high) {
    const middle = (low + high) >> 1
    const other = line[middle]
    if (other !== undefined && compareHeads(other.head, head) < 0) low = middle + 1
    else high = middle
  }
  return low
}

const takeFetched = `UPDATE chokaq_jobs_hot SET state = 'fetched', worker_id = ?, token = ?, fetched_at = ?,
  fetch_crash_budget = ? WHERE rowid = ?`
const takeStarted = `UPDATE chokaq_jobs_hot SET state = 'processing', worker_id = ?, token = ?, fetched_at = ?,
  attempt = attempt + 1, started_at = ?, first_started_at = coalesce(first_started_at, ?), fast_started = 1,
  when_interrupted = ?, crash_budget = ?, fetch_crash_budget = ? WHERE rowid = ?`

function takeRow(
  tx: Transaction,
  row: PendingRow,
  token: number,
  policy: TypePolicy,
  workerId: string,
  counters: CounterSum,
): FetchedJob {
  const { session, nowMs } = tx
  const lease = { jobId: row.id, token }
  const { whenInterrupted, crashBudget, fetchCrashBudget } = policy
  if (!mayFastStart(tx, row, policy)) {
    session.statement(takeFetched).run(workerId, token, nowMs, fetchCrashBudget, row.rowid)
    return fetchedJob(row, row.queue, lease, undefined)
  }
  session
    .statement(takeStarted)
    .run(workerId, token, nowMs, nowMs, nowMs, whenInterrupted, crashBudget, fetchCrashBudget, row.rowid)
  if (row.key_hash !== null) counters.add('idempotency.claims', row, 'claimed')
  counters.add('lag', row, histogramLabel(nowMs - row.run_at))
  return fetchedJob(row, row.queue, lease, nowMs)
}

/** The key stood on the committed row before this transaction began, so the marker may be read here. */
function mayFastStart({ session, nowMs }: Transaction, row: PendingRow, policy: TypePolicy): boolean {
  if (!policy.fastStart || row.crash_count > 0 || row.suspect === 1 || row.cancel_requested_at !== null) return false
  if (row.first_started_at !== null && nowMs - row.first_started_at > policy.retryLifetimeMs) return false
  if (row.key_hash === null) return !policy.keyed
  return findLiveMarker(session, row.key_hash, nowMs) === undefined
}

interface ClaimRow {
  readonly rowid: number
  readonly key_hash: string | null
}

const selectFetched = `SELECT rowid, key_hash FROM chokaq_jobs_hot WHERE id = ? AND token = ? AND state = 'fetched'`
const selectKeyHolder = 'SELECT id, fingerprint FROM chokaq_jobs_hot WHERE key_hash = ?'
const writeKey = `UPDATE chokaq_jobs_hot SET key_hash = ?, key_prefix = ?, key_scope = ?, fingerprint = ?, key_computed = 1
  WHERE rowid = ?`

/**
 * claim: fetched -> fetched, with the key its worker computed
 * Precondition: lease; no other hot row has the key.
 * Returns claimed, held (the row keeps no key) or lost. Repeating it after a lost reply is harmless.
 * Who: the owner, for a keyed row that was enqueued without its key. Committed before start looks at the marker.
 */
export function claim(tx: Transaction, requests: readonly ClaimRequest[]): readonly ClaimVerdict[] {
  return requests.map((request) => claimOne(tx.session, request))
}

function claimOne(session: Session, { lease, key, fingerprint }: ClaimRequest): ClaimVerdict {
  const row = session.get<ClaimRow>(selectFetched, lease.jobId, lease.token)
  if (row === undefined) return { kind: 'lost' }
  // A stored key wins over a recomputed one.
  if (row.key_hash !== null) return { kind: 'claimed' }
  const holder = session.get<{ readonly id: string; readonly fingerprint: string | null }>(selectKeyHolder, key.hash)
  if (holder !== undefined) {
    const sameFingerprintAsHolder = sameFingerprint(fingerprint, holder.fingerprint) !== 'different'
    return { kind: 'held', jobId: holder.id, sameFingerprint: sameFingerprintAsHolder }
  }
  session.run(writeKey, key.hash, key.prefix, key.scope, fingerprint, row.rowid)
  return { kind: 'claimed' }
}
