/** The gate in front of the handler. */
import { sameFingerprint } from '../../../core/canonical-json.ts'
import type { MarkerState } from '../../../core/inspector.ts'
import { leaseId } from '../../../core/lease.ts'
import type { HolderState, StartRequest, StartVerdict } from '../../../core/storage.ts'
import { missingVerdict, type Unit } from '../transactions.ts'
import { histogramLabelOf } from './histogram.ts'
import { holderStates } from './markers.ts'
import { isUuid } from './uuid.ts'

const maxInteger = 2 ** 31 - 1
const incoming = `json_to_recordset($1::text::json) AS r(n integer, id uuid, token bigint, keyed boolean,
  when_interrupted text, crash_budget integer, fetch_crash_budget integer, lifetime bigint)`
const isPaused = 'EXISTS (SELECT FROM chokaq.queues q WHERE q.name = h.queue AND q.paused)'

// One lookup by id for each row, locked in the order in which they come, then updated where it lies. A row that somebody
// changed between this statement's snapshot and its lock is tried again by the next round.
// The marker is read by this statement, which begins after the claim was committed (R3 of the design).
const startRows = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now),
  l AS MATERIALIZED (SELECT i.*, o.place FROM ${incoming.replace(' AS r(', ' AS i(')} CROSS JOIN LATERAL
    (SELECT h.ctid AS place FROM chokaq.jobs_hot h WHERE h.id = i.id AND h.token = i.token AND h.state = 'fetched'
      FOR UPDATE) o),
  u AS (
    UPDATE chokaq.jobs_hot h SET state = 'processing', attempt = h.attempt + 1, started_at = c.now,
      first_started_at = coalesce(h.first_started_at, c.now), fast_started = false,
      when_interrupted = i.when_interrupted, crash_budget = i.crash_budget, fetch_crash_budget = i.fetch_crash_budget
    FROM l i CROSS JOIN c
    WHERE h.ctid = i.place AND h.id = i.id AND h.token = i.token AND h.state = 'fetched'
      AND h.cancel_requested_at IS NULL
      AND NOT ${isPaused} AND (h.first_started_at IS NULL OR c.now - h.first_started_at <= i.lifetime)
      AND CASE WHEN h.key_hash IS NULL THEN NOT i.keyed ELSE NOT EXISTS (SELECT FROM chokaq.idempotency_markers m
        WHERE m.key_hash = h.key_hash AND NOT (m.job_id = h.id AND m.state = 'in_doubt')
          AND (m.expires_at IS NULL OR m.expires_at > c.now)) END
    RETURNING h.id, h.token, h.queue, h.type, h.key_hash, h.run_at, h.attempt, h.started_at, h.first_started_at),
  counted AS (
    INSERT INTO chokaq.worker_counters (at, value, name, queue, type, label)
    SELECT started_at, count(*), 'idempotency.claims', queue, type, 'claimed' FROM u WHERE key_hash IS NOT NULL
    GROUP BY 1, 4, 5
    UNION ALL
    SELECT started_at, count(*), 'lag', queue, type, ${histogramLabelOf('started_at - run_at')} FROM u
    GROUP BY 1, 4, 5, 6)
  SELECT id::text AS id, token, attempt, started_at, first_started_at FROM u`

const selectReasons = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now)
  SELECT r.n, h.state, h.attempt, h.started_at, h.first_started_at, h.fingerprint,
    (h.cancel_requested_at IS NOT NULL) AS is_cancelled, ${isPaused} AS is_paused,
    (h.first_started_at IS NOT NULL AND c.now - h.first_started_at > r.lifetime) AS is_expired,
    (h.key_hash IS NULL AND r.keyed) AS is_unclaimed, m.job_id::text AS marker_job, m.state AS marker_state,
    m.fingerprint AS marker_fingerprint, m.result::text AS marker_result
  FROM ${incoming} CROSS JOIN c
  LEFT JOIN LATERAL (SELECT * FROM chokaq.jobs_hot j WHERE j.id = r.id AND j.token = r.token
    AND j.state IN ('fetched', 'processing') OFFSET 0) h ON true
  LEFT JOIN LATERAL (SELECT * FROM chokaq.idempotency_markers k WHERE k.key_hash = h.key_hash
    AND NOT (k.job_id = h.id AND k.state = 'in_doubt') AND (k.expires_at IS NULL OR k.expires_at > c.now) OFFSET 0) m
    ON true`

interface StartedRow {
  readonly id: string
  readonly token: number
  readonly attempt: number
  readonly started_at: number
  readonly first_started_at: number
}

interface ReasonRow {
  readonly n: number
  readonly state: 'fetched' | 'processing' | null
  readonly attempt: number
  readonly started_at: number
  readonly first_started_at: number
  readonly fingerprint: string | null
  readonly is_cancelled: number
  readonly is_paused: number
  readonly is_expired: number
  readonly is_unclaimed: number
  readonly marker_job: string | null
  readonly marker_state: MarkerState | null
  readonly marker_fingerprint: string | null
  readonly marker_result: string | null
}

const maxRounds = 10
const statement = { isOneStatement: true, isRepeatable: true } as const

/**
 * start: fetched -> processing
 * Precondition, in this order: lease; no cancel asked; queue not paused; within the retry lifetime; no live marker of
 * another job on the key (its own in_doubt marker does not count).
 * Returns one verdict per row. A row that this lease started before (a lost reply) is started already, at its attempt.
 * Who: the owner, after claim was committed. Each round commits by itself.
 */
export async function start(
  run: <T>(unit: Unit<T>) => Promise<T>,
  requests: readonly StartRequest[],
): Promise<readonly StartVerdict[]> {
  const verdicts: (StartVerdict | undefined)[] = requests.map(({ lease }) =>
    isUuid(lease.jobId) ? undefined : { kind: 'lost' },
  )
  for (let round = 0; round < maxRounds; round += 1) {
    const open = requests.flatMap((request, n) => (verdicts[n] === undefined ? [{ request, n }] : []))
    if (open.length === 0) break
    const values = valuesOf(open.map(({ request }) => request))
    const rows = await run({
      ...statement,
      committed: 'start-committed',
      work: ({ session }) => session.all<StartedRow>(startRows, ...values),
    })
    const started = new Map(rows.map((row) => [leaseId({ jobId: row.id, token: row.token }), startedVerdict(row)]))
    for (const { request, n } of open) verdicts[n] = started.get(leaseId(request.lease))
    const left = open.filter(({ n }) => verdicts[n] === undefined)
    if (left.length === 0) break
    const leftValues = valuesOf(left.map(({ request }) => request))
    const reasons = await run({
      ...statement,
      work: ({ session }) => session.all<ReasonRow>(selectReasons, ...leftValues),
    })
    for (const row of reasons) {
      const at = left[row.n]
      if (at !== undefined) verdicts[at.n] = reasonOf(row)
    }
  }
  return verdicts.map((verdict) => {
    if (verdict === undefined) throw missingVerdict('a start')
    return verdict
  })
}

function startedVerdict(row: Pick<StartedRow, 'attempt' | 'started_at' | 'first_started_at'>): StartVerdict {
  return {
    kind: 'started',
    attempt: row.attempt,
    startedAtMs: row.started_at,
    firstStartedAtMs: row.first_started_at,
  }
}

/** Undefined where what stood in the way is gone. */
function reasonOf(row: ReasonRow): StartVerdict | undefined {
  if (row.state === null) return { kind: 'lost' }
  if (row.state === 'processing') return startedVerdict(row)
  if (row.is_cancelled === 1) return { kind: 'cancelled' }
  if (row.is_paused === 1) return { kind: 'paused' }
  if (row.is_expired === 1) return { kind: 'expired' }
  if (row.marker_job !== null && row.marker_state !== null) {
    const holder: HolderState = holderStates[row.marker_state]
    const isSame = sameFingerprint(row.fingerprint, row.marker_fingerprint) !== 'different'
    return { kind: 'duplicate', jobId: row.marker_job, holder, result: row.marker_result, sameFingerprint: isSame }
  }
  // A keyed type without its key would run without a claim: the worker has to claim first.
  return row.is_unclaimed === 1 ? { kind: 'lost' } : undefined
}

function valuesOf(requests: readonly StartRequest[]): readonly unknown[] {
  const rows = requests.map(({ lease, policy }, n) => ({
    n,
    id: lease.jobId,
    token: lease.token,
    keyed: policy.keyed,
    when_interrupted: policy.whenInterrupted,
    crash_budget: Math.min(policy.crashBudget, maxInteger),
    fetch_crash_budget: Math.min(policy.fetchCrashBudget, maxInteger),
    lifetime: Math.ceil(Math.min(policy.retryLifetimeMs, Number.MAX_SAFE_INTEGER)),
  }))
  // Sorted, so that rows are locked in one order.
  return [JSON.stringify(rows.sort((a, b) => (a.id < b.id ? -1 : 1)))]
}
