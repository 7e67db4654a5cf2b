/**
 * Every ending but the plain success. The rows are locked first and read with what the decision needs; the decision is
 * made here, row by row, and written back in at most three statements, however many rows there are: the markers in
 * doubt, the rows that leave hot, the rows that wait again. Payloads never leave the database.
 */
import { CounterSum } from '../../../core/counters.ts'
import { appendHistory, serializeFailure, type StoredFailure } from '../../../core/failure.ts'
import type { ArchiveOutcome, DeadReason } from '../../../core/job.ts'
import { histogramLabel } from '../../../core/metrics.ts'
import { jobColumns } from '../../row-mapping.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../transactions.ts'
import { type Holds, holdsOf, noHolds } from './ledger-holds.ts'
import { forgetOwnDoubts, leaveMarkers, type NewMarker } from './markers.ts'

/** What every ending needs to know of a hot row. */
export interface HotRow extends Holds {
  readonly id: string
  readonly token: number
  readonly state: 'scheduled' | 'pending' | 'fetched' | 'processing'
  readonly type: string
  readonly queue: string
  readonly run_at: number
  readonly attempt: number
  readonly failure_count: number
  readonly crash_count: number
  readonly fetch_crash_count: number
  readonly generation: number
  readonly suspect: number
  readonly fast_started: number
  readonly started_at: number | null
  readonly first_started_at: number | null
  readonly when_interrupted: 'resume' | 'review' | null
  readonly crash_budget: number | null
  readonly fetch_crash_budget: number | null
  readonly worker_id: string | null
  readonly cancel_requested_at: number | null
  readonly key_hash: string | null
  readonly key_computed: number
  readonly fingerprint: string | null
  readonly history: string | null
  readonly now: number
}

/** Rows that `sql` locks, with what the ledger has against their end. */
export async function lockRows(
  session: Session,
  sql: string,
  ...values: readonly unknown[]
): Promise<readonly HotRow[]> {
  const rows = await session.all<Omit<HotRow, keyof Holds>>(sql, ...values)
  const holds = await holdsOf(session, rows)
  return rows.map((row) => ({ ...row, ...(holds.get(row.id) ?? noHolds) }))
}

/**
 * Of a row named h, with c.now as the time. In types that every driver gives as numbers, because the transaction may be
 * the user's: float8 counts exactly as far as JavaScript does.
 */
export const hotRowColumns = `h.id::text AS id, h.token::float8 AS token, h.state, h.type, h.queue,
  h.run_at::float8 AS run_at, h.attempt, h.failure_count, h.crash_count, h.fetch_crash_count, h.generation,
  h.suspect::int AS suspect, h.fast_started::int AS fast_started, h.started_at::float8 AS started_at,
  h.first_started_at::float8 AS first_started_at, h.when_interrupted, h.crash_budget, h.fetch_crash_budget, h.worker_id,
  h.cancel_requested_at::float8 AS cancel_requested_at, encode(h.key_hash, 'hex') AS key_hash,
  h.key_computed::int AS key_computed, h.fingerprint, h.history, c.now::float8 AS now`

/** A review handler had started: nobody knows how far it came. */
export function isInterruptedReview(row: HotRow): boolean {
  return row.state === 'processing' && row.when_interrupted === 'review'
}

interface Leaving {
  readonly id: string
  readonly pillar: 'archive' | 'dlq'
  readonly outcome?: ArchiveOutcome
  readonly reason?: DeadReason
  readonly in_doubt?: boolean
  readonly failure_count: number
  readonly crash_count: number
  readonly fetch_crash_count: number
  readonly failure: string | null
  readonly history: string | null
  readonly duplicate_of: string | null
  readonly result: string | null
  readonly raise: boolean
}

interface Waiting {
  readonly id: string
  readonly state: 'scheduled' | 'pending'
  readonly run_at: number
  readonly attempt: number
  readonly failure_count: number
  readonly crash_count: number
  readonly fetch_crash_count: number
  readonly suspect: boolean
  readonly started_at: number | null
  readonly first_started_at: number | null
  readonly failure: string | null
  readonly history: string | null
  readonly forget: boolean
  readonly raise: boolean
}

export interface Burial {
  readonly reason: DeadReason
  readonly failure: StoredFailure | null
  /** How the history names the end of the attempt. */
  readonly kind: string
  /** Leaves a marker in doubt, which only a decision of a person ends. */
  readonly hold: boolean
  readonly addFailures?: number
  readonly addCrashes?: number
  readonly addFetchCrashes?: number
  readonly result?: string | null
  readonly duplicateOf?: string | null
  /** Leaves a marker terminal for this long: the outcome is final and known. */
  readonly terminalForMs?: number
}

export type WaitingChange = Partial<Omit<Waiting, 'id' | 'failure' | 'history'>> & {
  readonly failure?: StoredFailure | null
  readonly kind?: string
}

/** Collects what is to become of locked rows, then writes it. */
export class Endings {
  readonly counters = new CounterSum()
  readonly #leaving: Leaving[] = []
  readonly #waiting: Waiting[] = []
  readonly #markers: NewMarker[] = []
  readonly #marked: HotRow[] = []
  readonly #keysGoingFree: HotRow[] = []
  readonly #doubtless: HotRow[] = []

  /** Counts how long an attempt ran; once for each that its owner ends. */
  ran(row: HotRow): void {
    if (row.state !== 'processing' || row.started_at === null) return
    this.counters.add('duration', row, histogramLabel(row.now - row.started_at))
  }

  /** The row's new failure and history; null where nothing is to be written. */
  #recorded(row: HotRow, failure: StoredFailure | null, kind: string): Pick<Waiting, 'failure' | 'history'> {
    if (failure === null) return { failure: null, history: null }
    const entry = { attempt: row.attempt, atMs: row.now, kind, failure }
    return { failure: serializeFailure(failure), history: appendHistory(row.history, entry) }
  }

  /** Moves a row into the DLQ, with its marker where a person has to decide, and counts it. */
  bury(row: HotRow, burial: Burial): void {
    const hold = burial.hold || row.holdsKey
    this.#leaving.push({
      id: row.id,
      pillar: 'dlq',
      reason: burial.reason,
      in_doubt: hold,
      failure_count: row.failure_count + (burial.addFailures ?? 0),
      crash_count: row.crash_count + (burial.addCrashes ?? 0),
      fetch_crash_count: row.fetch_crash_count + (burial.addFetchCrashes ?? 0),
      ...this.#recorded(row, burial.failure, burial.kind),
      duplicate_of: burial.duplicateOf ?? null,
      result: burial.result ?? null,
      raise: false,
    })
    this.counters.add('jobs.dlq', row, burial.reason)
    if (row.key_hash === null) return
    if (hold) this.#mark(row, { state: 'in_doubt', failure: null, life: null })
    else if (burial.terminalForMs !== undefined) {
      const failure = burial.failure === null ? null : serializeFailure(burial.failure)
      this.#mark(row, { state: 'terminal', failure, life: Math.ceil(burial.terminalForMs) })
    }
    // A conflict is an outcome of its own, and the key stays with the other job's marker.
    else if (burial.reason !== 'CompleteConflict') this.#keysGoingFree.push(row)
    if (!hold) this.#doubtless.push(row)
  }

  #mark(row: HotRow, marker: Pick<NewMarker, 'state' | 'failure' | 'life'>): void {
    const { id, key_hash, generation, token, fingerprint } = row
    this.#markers.push({ ...marker, key: key_hash ?? '', id, generation, token, fingerprint, result: null })
    this.#marked.push(row)
  }

  archive(
    row: HotRow,
    outcome: ArchiveOutcome,
    more: { readonly duplicateOf?: string; readonly result?: string | null; readonly raise?: boolean } = {},
  ): void {
    const { failure_count, crash_count, fetch_crash_count } = row
    this.#leaving.push({
      id: row.id,
      pillar: 'archive',
      outcome,
      failure_count,
      crash_count,
      fetch_crash_count,
      failure: null,
      history: null,
      duplicate_of: more.duplicateOf ?? null,
      result: more.result ?? null,
      raise: more.raise ?? false,
    })
  }

  /** Moves a row into the archive as cancelled and counts it. Precondition: nothing of its key is in doubt. */
  cancelled(row: HotRow, recorded: WaitingChange = {}, raise = false): void {
    const { failure = null, kind = '' } = recorded
    this.archive(row, 'cancelled', { raise })
    const last = this.#leaving.at(-1)
    if (last !== undefined && (failure !== null || recorded.failure_count !== undefined)) {
      const failure_count = recorded.failure_count ?? row.failure_count
      this.#leaving.splice(-1, 1, { ...last, failure_count, ...this.#recorded(row, failure, kind) })
    }
    this.counters.add('jobs.cancelled', row)
    if (row.key_hash === null) return
    this.#keysGoingFree.push(row)
    this.#doubtless.push(row)
  }

  /** Lets a row wait again, without its owner. What is not named stays. */
  wait(row: HotRow, change: WaitingChange): void {
    const { failure = null, kind = '', ...columns } = change
    this.#waiting.push({
      id: row.id,
      state: 'pending',
      run_at: row.run_at,
      attempt: row.attempt,
      failure_count: row.failure_count,
      crash_count: row.crash_count,
      fetch_crash_count: row.fetch_crash_count,
      suspect: row.suspect === 1,
      started_at: row.started_at,
      first_started_at: row.first_started_at,
      forget: false,
      raise: false,
      ...columns,
      ...this.#recorded(row, failure, kind),
    })
  }

  async write(tx: Transaction): Promise<void> {
    const { session } = tx
    await forgetOwnDoubts(session, this.#doubtless)
    const left = await leaveMarkers(session, this.#markers)
    for (const row of this.#marked) if (!left.has(row.key_hash ?? '')) this.#keysGoingFree.push(row)
    for (const row of this.#keysGoingFree) this.counters.add('idempotency.claims', row, 'released')
    if (this.#leaving.length > 0) await session.all(moveRows, JSON.stringify(this.#leaving))
    if (this.#waiting.length > 0) await session.all(letWait, JSON.stringify(this.#waiting))
    await session.addCounters(this.counters)
    if (this.#waiting.some(({ state }) => state === 'pending')) tx.jobsBecameReady = true
  }
}

const kept = jobColumns.join(', ')

/** The columns of a row g on its way out; those in `changed` come from elsewhere. */
export function columnsOf(changed: Readonly<Record<string, string>>, row = 'g'): string {
  return jobColumns.map((column) => changed[column] ?? `${row}.${column}`).join(', ')
}

const recorded = {
  token: `CASE WHEN (p.i).raise THEN nextval('chokaq.lease_token') ELSE (p.g).token END`,
  failure_count: '(p.i).failure_count',
  crash_count: '(p.i).crash_count',
  fetch_crash_count: '(p.i).fetch_crash_count',
  failure: 'coalesce((p.i).failure, (p.g).failure)',
  history: 'coalesce((p.i).history, (p.g).history)',
}

// The rows are locked by this transaction, so the ids alone are guard enough. A FULL JOIN is always a hash join: the
// planner guesses one deleted row, and an inner join would walk the list once per row.
const moveRows = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now),
  i AS MATERIALIZED (SELECT * FROM json_to_recordset($1::text::json) AS r(id uuid, pillar text, outcome text,
    reason text, in_doubt boolean, failure_count integer, crash_count integer, fetch_crash_count integer, failure text,
    history text, duplicate_of uuid, result text, raise boolean)),
  gone AS (DELETE FROM chokaq.jobs_hot WHERE id = ANY(ARRAY(SELECT id FROM i ORDER BY id)) RETURNING *),
  p AS MATERIALIZED (SELECT g, i, c.now FROM c CROSS JOIN gone g FULL JOIN i ON i.id = g.id),
  dead AS (
    INSERT INTO chokaq.jobs_dlq (${kept}, reason, in_doubt, duplicate_of, finished_at, result)
    SELECT ${columnsOf({ ...recorded, revision: '(p.g).revision + 1' }, '(p.g)')}, (p.i).reason, (p.i).in_doubt,
      (p.i).duplicate_of, p.now, (p.i).result::json
    FROM p WHERE (p.g).id IS NOT NULL AND (p.i).pillar = 'dlq')
  INSERT INTO chokaq.jobs_archive (${kept}, outcome, duplicate_of, finished_at, result)
  SELECT ${columnsOf(recorded, '(p.g)')}, (p.i).outcome, (p.i).duplicate_of, p.now, (p.i).result::json
  FROM p WHERE (p.g).id IS NOT NULL AND (p.i).pillar = 'archive'`

// Updated where they lie, for the same reason: the rows are this transaction's.
const letWait = `
  WITH i AS MATERIALIZED (SELECT * FROM json_to_recordset($1::text::json) AS r(id uuid, state text, run_at bigint,
    attempt integer, failure_count integer, crash_count integer, fetch_crash_count integer, suspect boolean,
    started_at bigint, first_started_at bigint, failure text, history text, forget boolean, raise boolean)),
  l AS MATERIALIZED (SELECT i.*, o.place FROM i CROSS JOIN LATERAL
    (SELECT h.ctid AS place FROM chokaq.jobs_hot h WHERE h.id = i.id OFFSET 0) o)
  UPDATE chokaq.jobs_hot h SET state = i.state, run_at = i.run_at, worker_id = NULL, fetched_at = NULL,
    fast_started = false, attempt = i.attempt, failure_count = i.failure_count, crash_count = i.crash_count,
    fetch_crash_count = i.fetch_crash_count, suspect = i.suspect, started_at = i.started_at,
    first_started_at = i.first_started_at, failure = coalesce(i.failure, h.failure),
    history = coalesce(i.history, h.history),
    token = CASE WHEN i.raise THEN nextval('chokaq.lease_token') ELSE h.token END,
    key_hash = CASE WHEN i.forget THEN NULL ELSE h.key_hash END,
    key_prefix = CASE WHEN i.forget THEN NULL ELSE h.key_prefix END,
    key_scope = CASE WHEN i.forget THEN NULL ELSE h.key_scope END,
    fingerprint = CASE WHEN i.forget THEN NULL ELSE h.fingerprint END,
    key_computed = h.key_computed AND NOT i.forget
  FROM l i WHERE h.ctid = i.place AND h.id = i.id`
