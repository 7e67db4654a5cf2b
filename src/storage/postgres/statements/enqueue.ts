/**
 * Into hot. The insert takes a whole batch and says which rows got in; why the others did not is asked in a second
 * statement, because ON CONFLICT DO NOTHING hides the winner from the first. Where neither sees a reason (the holder
 * left in between), the row is tried again. So an answer "there is one already" always speaks of a committed row.
 *
 * A marker is looked at by the insert itself. That can miss one that is being written at this moment, by the last holder
 * of the key; then the row gets in, and the start of the job finds the marker and skips it.
 *
 * A row that may be stored already (`mayExist`) can be in any pillar, and move while it is looked for. So it is inserted
 * first, which the row it may equal in hot prevents, and then looked for in a later statement of the same transaction;
 * if it is found it is deleted again, and nobody has seen it.
 *
 * A row that is new by its producer's word can be stored, too: its client gave up, repeated it, and the first call arrives
 * at last. So the insert looks for the id itself, in all three pillars. Whoever moves a job does so in one transaction,
 * so one snapshot sees it in exactly one of them. Hot is part of it although its index refuses a second row: the index
 * waits for a job that is leaving, and lets the insert in once it has left. What is not seen is a job whose whole life
 * falls between the snapshot of this statement and its insert, and rows without a key, for which this matters, are
 * inserted first and wait for nobody.
 *
 * Rows come as one JSON text: it is the one parameter that every driver binds alike, and a user's transaction may be of
 * any of them.
 */
import { CounterSum } from '../../../core/counters.ts'
import type { NewJob } from '../../../core/job.ts'
import type { EnqueueVerdict } from '../../../core/storage.ts'
import type { Transaction } from '../transactions.ts'
import { missingVerdict } from '../transactions.ts'
import { findHolders } from './enqueue-verdicts.ts'
import { incomingColumns, rowsOf } from './incoming-rows.ts'
import { operationOf } from './markers.ts'

/**
 * The rows in the order of their keys, then of their ids: two batches that meet wait for each other in one direction
 * only. As indexes; of the same key the first of the batch comes first.
 */
function inLockOrder(jobs: readonly NewJob[]): readonly number[] {
  const of = (n: number): string => `${jobs[n]?.key?.hash ?? ''}/${jobs[n]?.key === undefined ? jobs[n]?.id : ''}`
  const marked = jobs.map((_, n) => ({ n, at: of(n) }))
  return marked.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : a.n - b.n)).map(({ n }) => n)
}

interface Shape {
  /** Some row has a key: its marker and what is left of its earlier jobs are looked at. */
  readonly isKeyed: boolean
  readonly isLarge: boolean
  /** Listeners are notified with the commit. */
  readonly isTelling: boolean
}

/** What tells other processes of the jobs. */
export interface Notification {
  readonly channel: string
  readonly payload: string
}

const pillars = ['hot', 'archive', 'dlq'] as const
const ids = 'ARRAY(SELECT id FROM i)'
// Of many rows the ids are looked for together; for a few, planning that costs more than it saves. Neither form is ever
// turned into a join: the tables may be large.
const knownTogether = `known AS MATERIALIZED (
    ${pillars.map((pillar) => `SELECT id FROM chokaq.jobs_${pillar} WHERE id = ANY(${ids})`).join(' UNION ALL ')}),`
const isUnknown = ({ isLarge }: Shape): string =>
  isLarge
    ? 'i.id NOT IN (SELECT id FROM known)'
    : `coalesce(${pillars.map((pillar) => `(SELECT 1 FROM chokaq.jobs_${pillar} k WHERE k.id = i.id)`).join()}) IS NULL`
const nextGeneration = `greatest(1, m.generation,
        (SELECT max(d.generation) FROM chokaq.jobs_dlq d WHERE d.key_hash = i.key_hash),
        (SELECT max(${operationOf}) FROM chokaq.effects e WHERE e.key_ref = i.key))`
// OFFSET 0 keeps the marker a lookup by index per row; joined, it fell to a hash of the whole table.
const withMarkers = `LEFT JOIN LATERAL (SELECT k.generation, k.expires_at FROM chokaq.idempotency_markers k
      WHERE k.key_hash = i.key_hash OFFSET 0) m ON true`
const isUnmarked = '(m.generation IS NULL OR m.expires_at <= i.now) AND'

// One notification for the whole batch, however many rows it has.
const tellThem = `, told AS MATERIALIZED (SELECT 1 FROM (SELECT FROM put WHERE state = 'pending' LIMIT 1) one
    CROSS JOIN LATERAL pg_catalog.pg_notify($2::text, $3::text))`

// run_at is never before now: a job that is due since last year would overtake everyone and spoil every lag figure.
const insertRows = (shape: Shape): string => `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now),
  i AS MATERIALIZED (
    SELECT r.*, decode(r.key, 'hex') AS key_hash, greatest(c.now + r.wait, r.due) AS run_at, c.now
    FROM json_to_recordset($1::text::json) AS r(${incomingColumns}), c),
  ${shape.isLarge ? knownTogether : ''}
  put AS (
    INSERT INTO chokaq.jobs_hot (id, state, type, queue, priority, run_at, generation, created_at, tenant, key_hash,
      key_prefix, key_scope, fingerprint, parent_id, trace_context, tags, payload)
    SELECT i.id, CASE WHEN i.run_at <= i.now THEN 'pending' ELSE 'scheduled' END, i.type, i.queue, i.priority, i.run_at,
      ${shape.isKeyed ? nextGeneration : '1'}, i.now,
      i.tenant, i.key_hash, i.key_prefix, i.key_scope, i.fingerprint, i.parent_id, i.trace_context, i.tags,
      i.payload::json
    FROM i ${shape.isKeyed ? withMarkers : ''}
    WHERE ${shape.isKeyed ? isUnmarked : ''} ${isUnknown(shape)}
    ORDER BY i.n
    ON CONFLICT DO NOTHING
    RETURNING id, queue, type, state, key_hash),
  counted AS (
    INSERT INTO chokaq.worker_counters (at, value, name, queue, type, label)
    SELECT c.now, count(*), 'jobs.enqueued', queue, type, '' FROM put CROSS JOIN c GROUP BY c.now, queue, type)
  ${shape.isTelling ? tellThem : ''}
  SELECT id::text AS id, encode(key_hash, 'hex') AS key, state FROM put ${shape.isTelling ? 'LEFT JOIN told ON true' : ''}`

const largeFrom = 100
const insertTexts = new Map<string, string>()

function insertText(jobs: readonly NewJob[], isTelling: boolean): string {
  const shape = { isKeyed: jobs.some(({ key }) => key !== undefined), isLarge: jobs.length >= largeFrom, isTelling }
  const id = JSON.stringify(shape)
  const made = insertTexts.get(id) ?? insertRows(shape)
  insertTexts.set(id, made)
  return made
}

interface InsertedRow {
  readonly id: string
  readonly key: string | null
  readonly state: string
}

/** One verdict per job, in order; undefined where the row did not get in and nothing is known yet. */
async function insertJobs(
  tx: Transaction,
  jobs: readonly NewJob[],
  notification?: Notification,
): Promise<(EnqueueVerdict | undefined)[]> {
  const order = inLockOrder(jobs)
  const ordered = order.flatMap((n) => jobs[n] ?? [])
  const isTelling = notification !== undefined
  const told = isTelling ? [notification.channel, notification.payload] : []
  const rows = await tx.session.planned<InsertedRow>(insertText(ordered, isTelling), rowsOf(ordered), ...told)
  if (rows.some(({ state }) => state === 'pending')) {
    tx.jobsBecameReady = true
    tx.hasNotified = isTelling
  }
  const inserted = new Set(rows.map(({ id, key }) => `${id}/${key ?? ''}`))
  const verdicts: (EnqueueVerdict | undefined)[] = jobs.map(() => undefined)
  // Of two rows that are the same in one batch only one got in: the first.
  ordered.forEach((job, place) => {
    const isIn = inserted.delete(`${job.id.toLowerCase()}/${job.key?.hash ?? ''}`)
    if (isIn) verdicts[order[place] ?? 0] = { kind: 'inserted' }
  })
  return verdicts
}

// The own row is deleted again where the same job is found elsewhere, or where its key left a marker meanwhile.
const takeBackKnown = `
  WITH c AS MATERIALIZED (SELECT chokaq.now_ms() AS now),
  i AS MATERIALIZED (SELECT r.id FROM json_to_recordset($1::text::json) AS r(id uuid) ORDER BY r.id)
  DELETE FROM chokaq.jobs_hot h USING i, c
  WHERE h.id = i.id AND (EXISTS (SELECT FROM chokaq.jobs_archive a WHERE a.id = h.id)
    OR EXISTS (SELECT FROM chokaq.jobs_dlq d WHERE d.id = h.id)
    OR EXISTS (SELECT FROM chokaq.idempotency_markers m
      WHERE m.key_hash = h.key_hash AND (m.expires_at IS NULL OR m.expires_at > c.now)))
  RETURNING h.id::text AS id`

/**
 * enqueue: nowhere -> scheduled | pending
 * Precondition: no hot row has the key, no live marker has it, and the id is new.
 * Returns one verdict per job, in order, undefined where it has to be looked for; a job that is there already changes
 * nothing.
 * Who: any producer. Rows with `mayExist` need a transaction around this. With a notification, the commit sends it.
 */
export async function enqueueOnce(
  tx: Transaction,
  jobs: readonly NewJob[],
  notification?: Notification,
): Promise<readonly (EnqueueVerdict | undefined)[]> {
  const verdicts = await insertJobs(tx, jobs, notification)
  const doubtful = jobs.filter((job, n) => job.mayExist && verdicts[n]?.kind === 'inserted')
  if (doubtful.length === 0) return verdicts
  const ids = JSON.stringify(doubtful.map(({ id }) => ({ id })))
  const known = new Set((await tx.session.all<{ readonly id: string }>(takeBackKnown, ids)).map(({ id }) => id))
  if (known.size === 0) return verdicts
  const counters = new CounterSum()
  for (const job of doubtful) if (known.has(job.id.toLowerCase())) counters.add('jobs.enqueued', job, '', -1)
  await tx.session.addCounters(counters)
  return verdicts.map((verdict, n) => (known.has(jobs[n]?.id.toLowerCase() ?? '') ? undefined : verdict))
}

const maxRounds = 10

/** Inserts and looks up in turns, inside one transaction, until every job has its verdict: children and user code. */
export async function enqueueAll(
  tx: Transaction,
  jobs: readonly NewJob[],
  counters: CounterSum,
): Promise<readonly EnqueueVerdict[]> {
  const verdicts: (EnqueueVerdict | undefined)[] = jobs.map(() => undefined)
  for (let round = 0; round < maxRounds; round += 1) {
    const open = jobs.flatMap((_, n) => (verdicts[n] === undefined ? [n] : []))
    if (open.length === 0) return verdicts.map(present)
    const rows = open.map((n) => jobs[n] as NewJob)
    const inserted = await enqueueOnce(tx, rows)
    open.forEach((n, at) => (verdicts[n] = inserted[at]))
    const left = open.filter((n) => verdicts[n] === undefined)
    if (left.length === 0) return verdicts.map(present)
    const found = await findHolders(
      tx.session,
      left.map((n) => jobs[n] as NewJob),
      counters,
    )
    left.forEach((n, at) => (verdicts[n] = found[at]))
  }
  return verdicts.map(present)
}

function present(verdict: EnqueueVerdict | undefined): EnqueueVerdict {
  if (verdict === undefined) throw missingVerdict('an enqueued row')
  return verdict
}
