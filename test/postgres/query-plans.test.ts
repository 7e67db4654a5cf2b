// Every hot statement keeps an index plan, whatever the tables hold. 20,000 hot rows are enough to make a scan the worse
// plan; CHOKAQ_EXPLAIN_ROWS=1000000 (npm run proof:explain) is the size the design speaks of.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgres } from 'chokaq/postgres'
import { createNodeRuntime } from '../../src/engine/node-runtime.ts'
import { complete, retry } from '../../src/testing/conformance/actions.ts'
import { keyedJob, keyedPolicy, newJob, policy } from '../../src/testing/conformance/new-job.ts'
import type { FetchedJob } from '../../src/core/job.ts'
import type { LedgerRef } from '../../src/core/ledger.ts'
import type { StorageDriver } from '../../src/core/storage.ts'
import { createDatabase, keepOnFailure } from './database.ts'

const rowCount = Number(process.env.CHOKAQ_EXPLAIN_ROWS ?? 20_000)
const seedMs = 50 * rowCount + 60_000

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Plan Rows': number
  readonly Plans?: readonly Plan[]
}

const plans: { readonly text: string; readonly plan: Plan }[] = []
let isWatching = false

/** Explains each statement with its own values before it runs. */
class ExplainingClient extends pg.Client {
  override query(config: unknown): never {
    const run = async (): Promise<unknown> => {
      const query = config as pg.QueryConfig
      if (isWatching && query.values !== undefined && /^\s*(WITH|SELECT|INSERT|UPDATE|DELETE)/.test(query.text)) {
        const { rows } = await super.query({ text: `EXPLAIN (FORMAT JSON) ${query.text}`, values: query.values })
        const [{ 'QUERY PLAN': explained }] = rows as [{ 'QUERY PLAN': unknown }]
        const [{ Plan: plan }] = (typeof explained === 'string' ? JSON.parse(explained) : explained) as [{ Plan: Plan }]
        plans.push({ text: query.text, plan })
      }
      return super.query(query)
    }
    return run() as never
  }
}

function nodesOf(plan: Plan): readonly Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}

const large = new Set(['jobs_hot', 'jobs_archive', 'jobs_dlq', 'idempotency_markers', 'effects'])

/** Reads of whole tables that grow, in the statements since the last call. */
function scans(): readonly string[] {
  const found = plans.flatMap(({ text, plan }) =>
    nodesOf(plan)
      .filter((node) => node['Node Type'] === 'Seq Scan' && large.has(node['Relation Name'] ?? ''))
      .map((node) => `${node['Relation Name']}: ${text.trim().slice(0, 200)}`),
  )
  plans.length = 0
  return found
}

const runtime = createNodeRuntime()
const database = await createDatabase()
const pool = new pg.Pool({ connectionString: database.url, Client: ExplainingClient })
const driver: StorageDriver = postgres(pool).open(runtime)
afterAll(async () => {
  await driver.close()
  await pool.end()
  await database.drop()
})

const fast = policy({ fastStart: true })
const fastKeyed = keyedPolicy({ fastStart: true })
const gated = keyedPolicy({ type: 'gated.v1' })
const others = Array.from({ length: 6 }, (_, n) => policy({ type: `other-${n}.v1`, fastStart: true }))

/** Half of the hot rows are pending, of types that this worker knows and of one that nobody does; the rest waits. */
const seed = [
  `INSERT INTO chokaq.jobs_hot (id, state, type, queue, priority, run_at, generation, created_at, key_hash, key_prefix,
      key_scope, payload)
    SELECT gen_random_uuid(), CASE WHEN n % 2 = 0 THEN 'pending' ELSE 'scheduled' END,
      CASE n % 8 WHEN 0 THEN 'mail.send.v1' WHEN 2 THEN 'payment.capture.v1' WHEN 4 THEN 'other-1.v1' ELSE 'unknown.v1' END,
      'default', n % 3, chokaq.now_ms() + CASE WHEN n % 2 = 0 THEN -n ELSE 86400000 + n END, 1, chokaq.now_ms() - n,
      CASE WHEN n % 8 = 2 THEN sha256(n::text::bytea) END, CASE WHEN n % 8 = 2 THEN n::text END,
      CASE WHEN n % 8 = 2 THEN 'seed' END, '{}'
    FROM generate_series(1, ${rowCount}) n`,
  `INSERT INTO chokaq.jobs_archive (id, outcome, type, queue, priority, run_at, token, generation, attempt,
      failure_count, crash_count, fetch_crash_count, revision, key_computed, created_at, finished_at, payload)
    SELECT gen_random_uuid(), 'completed', 'mail.send.v1', 'default', 0, n, n, 1, 1, 0, 0, 0, 0, false,
      chokaq.now_ms() - n, chokaq.now_ms() - n, '{}' FROM generate_series(1, ${rowCount}) n`,
  `INSERT INTO chokaq.jobs_dlq (id, reason, in_doubt, type, queue, priority, run_at, token, generation, attempt,
      failure_count, crash_count, fetch_crash_count, revision, key_computed, created_at, finished_at, payload)
    SELECT gen_random_uuid(), 'Timeout', false, 'mail.send.v1', 'default', 0, n, n, 1, 1, 0, 0, 0, 1, false,
      chokaq.now_ms() - n, chokaq.now_ms() - n, '{}' FROM generate_series(1, ${rowCount}) n`,
  `INSERT INTO chokaq.idempotency_markers (key_hash, state, job_id, token, created_at, expires_at, generation)
    SELECT sha256(('marker ' || n)::bytea), 'completed', gen_random_uuid(), n, n, chokaq.now_ms() + 86400000 + n, 1
    FROM generate_series(1, ${rowCount}) n`,
  `INSERT INTO chokaq.effects (id, token, opened_at, closed_at, keep_ms, generation, attempt, job_id, kind, state, key_ref,
      name, item, worker_id, provider, fingerprint, input)
    SELECT gen_random_uuid(), n, n, n, 1000, 1, 1, gen_random_uuid(), 'effect', 'done',
      encode(sha256(n::text::bytea), 'hex'), 'charge', '', 'w', 'p', 'f', '{}' FROM generate_series(1, ${rowCount}) n`,
]

beforeAll(async () => {
  await driver.ready()
  for (const text of seed) await database.query(text)
  await database.query('ANALYZE')
  const identity = runtime.processes.self()
  await driver.registerWorker({ id: 'w', name: 'w', identity, queues: ['default'], types: [], concurrency: 1 })
  isWatching = true
}, seedMs)

const fetched: FetchedJob[] = []
const fetchOf = (policies: readonly (typeof fast)[], limit: number) =>
  driver.fetch({ workerId: 'w', queue: 'default', limit, policies })

describe(`over ${rowCount} rows no hot statement reads a whole table`, () => {
  const steps: Readonly<Record<string, () => Promise<unknown>>> = {
    enqueue: () => driver.enqueue(Array.from({ length: 500 }, (_, n) => keyedJob(runtime, `new-${n}`))),
    'enqueue of duplicates and resends': () =>
      driver.enqueue([
        ...Array.from({ length: 50 }, (_, n) => keyedJob(runtime, `new-${n}`)),
        ...Array.from({ length: 50 }, () => newJob(runtime, { mayExist: true })),
      ]),
    'enqueue for the gate': () =>
      driver.enqueue(Array.from({ length: 300 }, () => newJob(runtime, { type: gated.type, priority: 9 }))),
    'fetch of one type': async () => fetched.push(...(await fetchOf([fast], 300))),
    'fetch of a keyed type': async () => fetched.push(...(await fetchOf([fastKeyed], 300))),
    'fetch of many types': async () => fetched.push(...(await fetchOf([fast, fastKeyed, ...others], 300))),
    'claim and start': async () => {
      const jobs = await fetchOf([gated], 300)
      const key = (n: number) => ({ hash: runtime.sha256(`claimed ${n}`), prefix: 'c', scope: 's' })
      await driver.claim(jobs.map(({ lease }, n) => ({ lease, key: key(n), fingerprint: 'v1:x' })))
      await driver.start(jobs.map(({ lease }) => ({ lease, policy: gated })))
      fetched.push(...jobs)
    },
    'intents and outcomes': async () => {
      const jobs = fetched.slice(300, 500)
      const refOf = (job: FetchedJob, kind: LedgerRef['kind'] = 'effect'): LedgerRef => {
        return { kind, keyRef: job.key?.hash ?? `job:${job.lease.jobId}`, generation: 1, name: 'refund', item: '' }
      }
      const own = { workerId: 'w', attempt: 1, keepMs: 1000 }
      const openOf = (job: FetchedJob, seen: readonly string[] = []) => {
        const request = { lease: job.lease, ref: refOf(job), id: runtime.newId(), providerKey: null, ...own }
        return {
          kind: 'open',
          provider: 'p',
          fingerprint: 'f',
          input: '{}',
          ...request,
          seenIds: seen,
          absentIds: seen,
        } as const
      }
      const closeOf = (id: string) =>
        ({ kind: 'close', id, state: 'done', result: '1', failure: null, replayed: false, supersedes: 'all' }) as const
      const intents = jobs.map((job) => openOf(job))
      await driver.ledger([
        ...jobs.map(({ lease, key }) => ({ kind: 'names', lease, keyRef: key?.hash ?? '', generation: 1 }) as const),
        ...jobs.map(({ lease, ...job }) => ({ kind: 'recall', lease, ref: refOf({ lease, ...job }, 'memo') }) as const),
        ...intents,
      ])
      const again = await driver.ledger(jobs.map((job, n) => openOf(job, [intents[n]?.id ?? ''])))
      expect(new Set(again.map(({ kind }) => kind))).toEqual(new Set(['opened']))
      const ids = jobs.map(() => runtime.newId())
      await driver.ledger([
        ...intents.map(({ id }) => closeOf(id)),
        ...jobs.map((job, n) => {
          const request = { lease: job.lease, ref: refOf(job, 'memo'), id: ids[n] ?? '', result: '1', ...own }
          return { kind: 'remember', ...request } as const
        }),
      ])
      const known = await driver.ledger(jobs.map((job) => openOf(job)))
      expect(new Set(known.map(({ kind }) => kind))).toEqual(new Set(['known']))
    },
    'settle: complete behind effects': () =>
      driver.settle(fetched.slice(300, 500).map(({ lease }) => ({ lease, action: complete({ guard: true }) }))),
    'settle: complete': () => driver.settle(fetched.splice(0, 300).map(({ lease }) => ({ lease, action: complete() }))),
    'settle: the rest': () =>
      driver.settle(
        fetched.splice(0, 300).map(({ lease }, n) => ({
          lease,
          action: n % 2 === 0 ? retry() : { kind: 'bury', reason: 'Timeout', failure: null, hold: false },
        })),
      ),
    'settle with children': () =>
      driver.settle(
        fetched.splice(0, 20).map(({ lease }) => ({ lease, action: complete({ children: [newJob(runtime)] }) })),
      ),
    'heartbeat and disown': async () => {
      await driver.heartbeat({ workerId: 'w', concurrency: 1, runningCount: 0, bufferedCount: 0 })
      await driver.disown({
        workerId: 'w',
        inHand: fetched.slice(0, 10).map(({ lease }) => lease),
        fetchedBeforeMs: 9e15,
      })
    },
    'promote, rescue and prune': async () => {
      await driver.promote({ limit: 100 })
      await driver.rescue({ deadWorkerIds: ['w'], limit: 100 })
      await driver.prune({ limit: 100, archiveRetentionMs: 1000, dlqRetentionMs: 1000 })
    },
    'lists and single jobs': async () => {
      for (const pillar of ['hot', 'archive', 'dlq'] as const) {
        const page = await driver.inspector.list({ pillar, filter: {}, limit: 50, cursor: undefined })
        await driver.inspector.list({ pillar, filter: {}, limit: 50, cursor: page.nextCursor })
        await driver.inspector.get(page.jobs[0]?.id ?? '')
      }
    },
  }
  it.each(Object.entries(steps))('%s', async (_, step) => {
    keepOnFailure(database)
    plans.length = 0
    await step()
    expect(plans.length).toBeGreaterThan(0)
    expect(scans()).toEqual([])
  })
})
