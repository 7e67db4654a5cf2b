/** The gate in front of the handler. */
import { sameFingerprint } from '../../../core/canonical-json.ts'
import { CounterSum } from '../../../core/counters.ts'
import { histogramLabel } from '../../../core/metrics.ts'
import type { StartRequest, StartVerdict } from '../../../core/storage.ts'
import type { Transaction } from '../write-transaction.ts'
import { findLiveMarker, holderStateOf } from './markers.ts'

interface StartRow {
  readonly rowid: number
  readonly state: 'fetched' | 'processing'
  readonly type: string
  readonly queue: string
  readonly attempt: number
  readonly run_at: number
  readonly started_at: number | null
  readonly first_started_at: number | null
  readonly cancel_requested_at: number | null
  readonly key_hash: string | null
  readonly fingerprint: string | null
}

const selectOwned = `SELECT rowid, state, type, queue, attempt, run_at, started_at, first_started_at, cancel_requested_at,
  key_hash, fingerprint FROM chokaq_jobs_hot WHERE id = ? AND token = ? AND state IN ('fetched', 'processing')`
const selectPaused = 'SELECT 1 AS paused FROM chokaq_queues WHERE name = ? AND paused = 1'
const startRow = `UPDATE chokaq_jobs_hot SET state = 'processing', attempt = attempt + 1, started_at = ?,
  first_started_at = coalesce(first_started_at, ?), fast_started = 0, when_interrupted = ?, crash_budget = ?,
  fetch_crash_budget = ? WHERE rowid = ?`

/**
 * start: fetched -> processing
 * Precondition, in this order: lease; no cancel asked; queue not paused; within the retry lifetime; no live marker of
 * another job on the key (its own in_doubt marker does not count).
 * Returns one verdict per row. A row that this lease started before (a lost reply) is started again, at the same attempt.
 * Who: the owner, after claim was committed.
 */
export function start(tx: Transaction, requests: readonly StartRequest[]): readonly StartVerdict[] {
  const counters = new CounterSum()
  const verdicts = requests.map((request) => startOne(tx, request, counters))
  tx.addCounters(counters)
  return verdicts
}

function startOne(tx: Transaction, { lease, policy }: StartRequest, counters: CounterSum): StartVerdict {
  const { session, nowMs } = tx
  const row = session.get<StartRow>(selectOwned, lease.jobId, lease.token)
  if (row === undefined) return { kind: 'lost' }
  if (row.state === 'processing') {
    const startedAtMs = row.started_at ?? nowMs
    return { kind: 'started', attempt: row.attempt, startedAtMs, firstStartedAtMs: row.first_started_at ?? startedAtMs }
  }
  if (row.cancel_requested_at !== null) return { kind: 'cancelled' }
  if (session.get(selectPaused, row.queue) !== undefined) return { kind: 'paused' }
  const firstStartedAtMs = row.first_started_at ?? nowMs
  if (nowMs - firstStartedAtMs > policy.retryLifetimeMs) return { kind: 'expired' }
  const duplicate = duplicateOf(tx, row, lease.jobId)
  if (duplicate !== undefined) return duplicate
  // A keyed type without its key would run without a claim: the worker has to claim first.
  if (row.key_hash === null && policy.keyed) return { kind: 'lost' }

  const { whenInterrupted, crashBudget, fetchCrashBudget } = policy
  session.run(startRow, nowMs, nowMs, whenInterrupted, crashBudget, fetchCrashBudget, row.rowid)
  if (row.key_hash !== null) counters.add('idempotency.claims', row, 'claimed')
  counters.add('lag', row, histogramLabel(nowMs - row.run_at))
  return { kind: 'started', attempt: row.attempt + 1, startedAtMs: nowMs, firstStartedAtMs }
}

function duplicateOf({ session, nowMs }: Transaction, row: StartRow, jobId: string): StartVerdict | undefined {
  const marker = row.key_hash === null ? undefined : findLiveMarker(session, row.key_hash, nowMs)
  if (marker === undefined || (marker.job_id === jobId && marker.state === 'in_doubt')) return undefined
  return {
    kind: 'duplicate',
    jobId: marker.job_id,
    holder: holderStateOf(marker),
    result: marker.result,
    sameFingerprint: sameFingerprint(row.fingerprint, marker.fingerprint) !== 'different',
  }
}
