/**
 * From pending to a worker's hands.
 *
 * How a fetch finds its rows. Within a queue a job is next by priority, then due time, then id, and a worker takes only
 * the types it registered. One index over (queue, priority, run_at, id) with the type as a filter gives that order, but
 * jobs of a type that no worker here knows would stand in front of everyone and be read again by every fetch. So the
 * index is (queue, type, priority DESC, run_at, id): one ordered lane per type, and the lanes are merged by the database.
 * Each lane locks what it hands over and no more (SKIP LOCKED inside the lane), because a merge of ordered inputs reads
 * one row ahead of each. With many types, those that have nothing pending are left out first, by one probe each.
 *
 * The picked rows are locked, so they are updated where they lie (ctid): by id, the planner went for a hash of the whole
 * table. A row that somebody changed between this statement's snapshot and its lock is left for the next fetch.
 *
 * A pending row is due: enqueue, retry and promote see to that. So fetch does not compare run_at with the clock.
 *
 * Fast start. The fetch itself starts a row where nothing can be lost by it; state, attempt, times and policy all hang on
 * the one condition `go`. The marker may be looked at in the same statement (R3 of the design) only because the key was
 * on the committed row before this statement's snapshot. A key that a worker computed does not qualify: under read
 * committed the lock may hand over a newer version of the row than the snapshot has, claimed after it.
 *
 * Limits. "Lock and count" in one statement overshot: the count would be of the snapshot before the lock came. So a queue
 * with a limit takes a transaction: lock the queue's row, then count and fetch in the next statement.
 */
import type { FetchedJob } from '../../../core/job.ts'
import type { BusyQueuesRequest, FetchRequest, TypePolicy } from '../../../core/storage.ts'
import { fetchedJob, type FetchableRow } from '../../row-mapping.ts'
import { type Fronts, unknownFront } from '../fetch-fronts.ts'
import type { Session } from '../session.ts'
import { missingVerdict, type Transaction } from '../transactions.ts'
import { histogramLabelOf } from './histogram.ts'

/** Above this many types it pays to ask first which of them have anything. */
export const maxUnaskedTypes = 3

const policyColumns = `type text, keyed boolean, fast boolean, when_interrupted text, crash_budget integer,
  fetch_crash_budget integer, lifetime bigint`
const maxInteger = 2 ** 31 - 1
const texts = new WeakMap<readonly TypePolicy[], string>()

/** The policies as JSON; the engine passes the same array again and again. */
function policyText(policies: readonly TypePolicy[]): string {
  const known = texts.get(policies)
  if (known !== undefined) return known
  const made = JSON.stringify(
    policies.map((policy) => ({
      type: policy.type,
      keyed: policy.keyed,
      fast: policy.fastStart,
      when_interrupted: policy.whenInterrupted,
      crash_budget: Math.min(policy.crashBudget, maxInteger),
      fetch_crash_budget: Math.min(policy.fetchCrashBudget, maxInteger),
      lifetime: Math.ceil(Math.min(policy.retryLifetimeMs, Number.MAX_SAFE_INTEGER)),
    })),
  )
  texts.set(policies, made)
  return made
}

const laneColumns =
  'ctid AS place, id, priority, run_at, type, crash_count, suspect, key_hash, key_computed, first_started_at, cancel_requested_at'

/** A worker never asks for more; a statement that says so has a plan that suits all it asks for. */
const mostAtOnce = 500

// The planner has to know that the number of rows is small. A kept plan does not know the parameter, so there the limit
// stands twice: the inner one says how many at most, the outer one takes what is asked for, row by row, and no row is
// locked that it does not take.
function lane(typeParameter: number, isKept: boolean, condition = 'true', name = `lane${typeParameter}`): string {
  const rows = (limit: string): string => `SELECT ${laneColumns} FROM chokaq.jobs_hot WHERE state = 'pending'
    AND queue = $1 AND type = $${typeParameter} AND ${condition} AND (SELECT is_free FROM q)
    ORDER BY priority DESC, run_at, id LIMIT ${limit} FOR UPDATE SKIP LOCKED`
  return `SELECT * FROM (${isKept ? `SELECT * FROM (${rows(String(mostAtOnce))}) few LIMIT $2` : rows('$2')}) ${name}`
}

/** The parameters of a lane that is entered at its front: type, priority, and the times above, at and below it. */
const frontParameters = 5
const laneConditions = (at: (n: number) => string): readonly string[] => [
  `priority > ${at(1)}::smallint AND run_at >= ${at(2)}::bigint`,
  `priority = ${at(1)}::smallint AND run_at >= ${at(3)}::bigint`,
  `priority < ${at(1)}::smallint AND run_at >= ${at(4)}::bigint`,
]

/**
 * A lane in three parts, each of which begins behind what is known to be taken: see fetch-fronts.ts. The parts stand in the
 * order of the lane and are read one after the other, so the lower ones are not touched while there is enough above.
 */
function laneFromFront(n: number, isKept: boolean): string {
  const first = 5 + n * frontParameters
  const parts = laneConditions((offset) => `$${first + offset}`).map((condition, part) =>
    lane(first, isKept, condition, `lane${n}part${part}`),
  )
  return `SELECT * FROM (${parts.join('\n    UNION ALL ')} LIMIT $2) lane${n}`
}

const selectQueue = `SELECT coalesce(s.paused, false) AS paused, s.max_concurrency IS NOT NULL AS limited,
    coalesce(NOT s.paused AND s.max_concurrency IS NULL, true) AS is_free
  FROM (SELECT 1) one LEFT JOIN chokaq.queues s ON s.name = $1`
const heldQueue = 'SELECT false AS paused, true AS limited, true AS is_free'

/** What is read of a row below; each is kept until the end of the statement. */
const returned = [
  ...['id', 'token', 'type', 'queue', 'fast_started', 'key_hash', 'fetched_at', 'run_at', 'started_at', 'priority'],
  ...['tags', 'tenant', 'key_prefix', 'key_scope', 'fingerprint', 'generation', 'attempt', 'failure_count'],
  ...['crash_count', 'suspect', 'created_at', 'first_started_at', 'trace_context', 'payload'],
]
  .map((column) => `h.${column}`)
  .join(', ')

/** What comes back of each job. Null stands for what nearly all have: it is neither sent nor parsed. */
const sentColumns = [
  ...['u.id::text AS id', 'u.token', 'u.type', 'u.payload::text AS payload', 'u.created_at'],
  ...['NULLIF(u.run_at, u.created_at) AS run_at', 'NULLIF(u.fast_started, false) AS is_started'],
  ...['NULLIF(u.priority, 0::smallint) AS priority', 'array_to_json(u.tags)::text AS tags', 'u.tenant'],
  ...[`encode(u.key_hash, 'hex') AS key_hash`, 'u.key_prefix', 'u.key_scope', 'u.fingerprint'],
  ...['NULLIF(u.generation, 1) AS generation', 'NULLIF(u.attempt - u.fast_started::int, 0) AS attempt'],
  ...['NULLIF(u.failure_count, 0) AS failure_count', 'NULLIF(u.crash_count, 0) AS crash_count'],
  ...['NULLIF(u.suspect, false) AS suspect', 'u.trace_context'],
  'NULLIF(u.first_started_at, CASE WHEN u.fast_started THEN u.fetched_at END) AS first_started_at',
]
const noJob = sentColumns.map(() => 'NULL').join(', ')

const fetchTexts = new Map<string, string>()

interface Shape {
  readonly typeCount: number
  readonly isHeld: boolean
  readonly isWhole: boolean
  /** Its plan is kept. */
  readonly isKept: boolean
}

/** $1 queue, $2 how many, $3 worker, $4 policies, $5 … the types, or each with its front. */
function fetchText({ typeCount, isHeld, isWhole, isKept }: Shape): string {
  const id = `${typeCount}/${isHeld}/${isWhole}/${isKept}`
  const known = fetchTexts.get(id)
  if (known !== undefined) return known
  const lanes = Array.from({ length: typeCount }, (_, n) =>
    isWhole ? lane(n + 5, isKept) : laneFromFront(n, isKept),
  ).join('\n    UNION ALL ')
  const made = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now),
  q AS MATERIALIZED (${isHeld ? heldQueue : selectQueue}),
  pick AS MATERIALIZED (
    ${typeCount === 1 ? lanes : `SELECT * FROM (${lanes}) l ORDER BY priority DESC, run_at, id LIMIT $2`}),
  f AS MATERIALIZED (
    SELECT k.id, k.place, c.now, p.*, (p.fast AND k.crash_count = 0 AND NOT k.suspect AND k.cancel_requested_at IS NULL
      AND (k.first_started_at IS NULL OR c.now - k.first_started_at <= p.lifetime)
      AND CASE WHEN k.key_hash IS NULL THEN NOT p.keyed ELSE NOT k.key_computed AND NOT EXISTS (
        SELECT FROM chokaq.idempotency_markers m
        WHERE m.key_hash = k.key_hash AND (m.expires_at IS NULL OR m.expires_at > c.now)) END) AS go
    FROM pick k CROSS JOIN c JOIN json_to_recordset($4::text::json) AS p(${policyColumns}) ON p.type = k.type),
  u AS (
    UPDATE chokaq.jobs_hot h SET state = CASE WHEN f.go THEN 'processing' ELSE 'fetched' END,
      worker_id = $3, token = nextval('chokaq.lease_token'), fetched_at = f.now,
      attempt = h.attempt + f.go::int, fast_started = f.go,
      started_at = CASE WHEN f.go THEN f.now ELSE h.started_at END,
      first_started_at = CASE WHEN f.go THEN coalesce(h.first_started_at, f.now) ELSE h.first_started_at END,
      when_interrupted = CASE WHEN f.go THEN f.when_interrupted ELSE h.when_interrupted END,
      crash_budget = CASE WHEN f.go THEN f.crash_budget ELSE h.crash_budget END,
      fetch_crash_budget = f.fetch_crash_budget
    FROM f WHERE h.ctid = f.place AND h.id = f.id RETURNING ${returned}),
  counted AS (
    INSERT INTO chokaq.worker_counters (at, value, name, queue, type, label)
    SELECT fetched_at, count(*), 'idempotency.claims', queue, type, 'claimed' FROM u
    WHERE fast_started AND key_hash IS NOT NULL GROUP BY fetched_at, queue, type
    UNION ALL
    SELECT fetched_at, count(*), 'lag', queue, type, ${histogramLabelOf('fetched_at - run_at')} FROM u
    WHERE fast_started GROUP BY 1, 4, 5, 6)
  SELECT NULL::bigint AS at_ms, NULL::bigint AS dead_count, NULL::boolean AS limited, NULL::boolean AS paused,
    ${sentColumns.join(', ')} FROM u
  UNION ALL SELECT c.now, pg_stat_get_dead_tuples('chokaq.jobs_hot'::regclass), q.limited, q.paused, ${noJob}
  FROM q CROSS JOIN c`
  fetchTexts.set(id, made)
  return made
}

interface TakenRow extends FetchableRow {
  readonly token: number
  /** Null where the fetch did not start it. */
  readonly is_started: 1 | null
}

/** What is said once of the whole fetch, in a row of its own. */
interface FactsRow {
  readonly id: null
  readonly limited: number
  readonly paused: number
  readonly at_ms: number
  readonly dead_count: number
}

export interface Fetched {
  readonly jobs: readonly FetchedJob[]
  /** The database's time of the statement. */
  readonly atMs: number
  /** The lanes were looked at: the queue is not paused, and has no limit or is held. */
  readonly hasLooked: boolean
  /** Dead rows among the hot ones, as the server estimates them. */
  readonly deadCount: number
  /** The queue has a limit: its row has to be locked first. */
  readonly isLimited: boolean
}

const isPending = `h.state = 'pending' AND h.queue = $1 AND h.type = t.type`
const selectBusyTypes = `SELECT t.type FROM json_array_elements_text($2::text::json) AS t(type)
  WHERE EXISTS (SELECT FROM chokaq.jobs_hot h WHERE ${isPending})`
const frontColumns = ['type', 'priority', 'above', 'same', 'below']
const selectBusyFromFronts = `SELECT t.type
  FROM json_to_recordset($2::text::json) AS t(type text, priority smallint, above bigint, same bigint, below bigint)
  WHERE ${laneConditions((n) => `t.${frontColumns[n] ?? ''}`)
    .map((condition) => `EXISTS (SELECT FROM chokaq.jobs_hot h WHERE ${isPending} AND ${condition})`)
    .join(' OR ')}`

/** The types that have something pending, with the fronts something behind them. */
export async function busyTypes(
  session: Session,
  { queue, policies }: FetchRequest,
  fronts: Fronts | undefined,
): Promise<readonly string[]> {
  const asked =
    fronts === undefined
      ? policies.map(({ type }) => type)
      : policies.map(({ type }) =>
          Object.fromEntries(frontValues(type, fronts).map((value, n) => [frontColumns[n] ?? '', value])),
        )
  const text = fronts === undefined ? selectBusyTypes : selectBusyFromFronts
  const rows = await session.all<{ readonly type: string }>(text, queue, JSON.stringify(asked))
  return rows.map(({ type }) => type)
}

// A probe by index for each pair; as a plain EXISTS it may become a join that reads all that is pending.
const selectBusyQueues = `SELECT q.queue FROM json_array_elements_text($1::text::json) AS q(queue)
  WHERE EXISTS (SELECT FROM json_array_elements_text($2::text::json) AS t(type) CROSS JOIN LATERAL (
    SELECT 1 FROM chokaq.jobs_hot h WHERE h.state = 'pending' AND h.queue = q.queue AND h.type = t.type LIMIT 1) b)`

/** The queues that have something pending of the types, paused ones too. */
export async function busyQueues(session: Session, { queues, types }: BusyQueuesRequest): Promise<readonly string[]> {
  const values = [JSON.stringify(queues), JSON.stringify(types)]
  return (await session.all<{ readonly queue: string }>(selectBusyQueues, ...values)).map(({ queue }) => queue)
}

const countOwned = `SELECT s.paused, s.max_concurrency,
    (SELECT count(*) FROM chokaq.jobs_hot o WHERE o.worker_id IS NOT NULL AND o.queue = $1) AS owned
  FROM chokaq.queues s WHERE s.name = $1`

interface OwnedRow {
  readonly paused: number
  readonly max_concurrency: number | null
  readonly owned: number
}

export interface Allowance {
  readonly count: number
  readonly isLimited: boolean
}

/** Locks the queue's row until the transaction ends, and says then how many more it may give. */
export async function lockQueue(session: Session, { queue, limit }: FetchRequest): Promise<Allowance> {
  await session.all('SELECT 1 FROM chokaq.queues WHERE name = $1 FOR UPDATE', queue)
  // A statement of its own: its snapshot is younger than the lock.
  const row = await session.get<OwnedRow>(countOwned, queue)
  const max = row?.max_concurrency ?? null
  if (row === undefined || max === null) return { count: row?.paused === 1 ? 0 : limit, isLimited: false }
  return { count: row.paused === 1 ? 0 : Math.min(limit, max - row.owned), isLimited: true }
}

/** The lanes that a fetch looks at: whole, or from the fronts. */
export interface Lanes {
  readonly types: readonly string[]
  readonly fronts: Fronts | undefined
}

/**
 * fetch: pending -> fetched, or -> processing where the fetch itself may start the row (fast start)
 * Precondition: the queue is not paused and below its limit, counting fetched and processing rows of all workers.
 * Returns the jobs in the order of the queue, each with a new token; whether the queue has a limit.
 * Who: a worker that registered the types. With `isHeld` after lockQueue, in the same transaction.
 */
export async function fetch(
  tx: Transaction,
  request: FetchRequest,
  { types, fronts }: Lanes,
  isHeld: boolean,
): Promise<Fetched> {
  const { queue, limit, workerId, policies } = request
  const { session } = tx
  const isKept = limit <= mostAtOnce && types.length <= maxUnaskedTypes
  const text = fetchText({ typeCount: types.length, isHeld, isWhole: fronts === undefined, isKept })
  const values = [
    queue,
    Math.max(0, Math.trunc(limit)),
    workerId,
    policyText(policies),
    ...(fronts === undefined ? types : types.flatMap((type) => frontValues(type, fronts))),
  ]
  type Row = TakenRow | FactsRow
  const rows = await (isKept ? session.planned<Row>(text, ...values) : session.all<Row>(text, ...values))
  const facts = rows.find((row): row is FactsRow => row.id === null)
  if (facts === undefined) throw missingVerdict('a fetch')
  const isLimited = facts.limited === 1 && facts.paused === 0
  const hasLooked = isHeld || (facts.limited === 0 && facts.paused === 0)
  const jobs: FetchedJob[] = []
  for (const row of rows) if (row.id !== null) jobs.push(jobOf(row, queue, facts.at_ms))
  return { isLimited, jobs: jobs.sort(inQueueOrder), atMs: facts.at_ms, deadCount: facts.dead_count, hasLooked }
}

function frontValues(type: string, fronts: Fronts): readonly (string | number)[] {
  const { priority, aboveMs, sameMs, belowMs } = fronts.get(type) ?? unknownFront
  return [type, priority, aboveMs, sameMs, belowMs]
}

/** An UPDATE returns its rows in an order of its own. Ids are compared as the database compares them: as bytes. */
function inQueueOrder(a: FetchedJob, b: FetchedJob): number {
  const [idOfA, idOfB] = [a.lease.jobId, b.lease.jobId]
  return b.priority - a.priority || a.runAtMs - b.runAtMs || (idOfA < idOfB ? -1 : idOfA > idOfB ? 1 : 0)
}

function jobOf(row: TakenRow, queue: string, atMs: number): FetchedJob {
  const lease = { jobId: row.id, token: row.token }
  return fetchedJob(row, queue, lease, row.is_started === 1 ? atMs : undefined)
}
