// A statement that is prepared by name keeps its plan, made without its values, over a table that may have been empty
// then and be large now. So no such plan may read a table that grows, or an index of one, from end to end.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgres } from 'chokaq/postgres'
import { createNodeRuntime } from '../../src/engine/node-runtime.ts'
import { complete } from '../../src/testing/conformance/actions.ts'
import { keyedJob, keyedPolicy, newJob, policy } from '../../src/testing/conformance/new-job.ts'
import type { StorageDriver } from '../../src/core/storage.ts'
import { createDatabase } from './database.ts'

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Plans?: readonly Plan[]
}

const kept = new Map<string, string>()
/** Whether the session has lost what was prepared, as behind a pooler that hands out another one each time. */
let isForgetful = false
/** As a tracer does that puts the trace of each call into its text. */
let isTracing = false
let queryCount = 0

class WatchedClient extends pg.Client {
  override query(config: unknown): never {
    const query = config as pg.QueryConfig
    if (query.name !== undefined) kept.set(query.text, query.name)
    const run = async (): Promise<unknown> => {
      queryCount += 1
      if (isForgetful && query.name !== undefined) await super.query('DEALLOCATE ALL')
      return super.query(isTracing ? { ...query, text: `${query.text} /* call ${queryCount} */` } : query)
    }
    return run() as never
  }
}

const runtime = createNodeRuntime()
const database = await createDatabase()
const pool = new pg.Pool({ connectionString: database.url, Client: WatchedClient })
const driver: StorageDriver = postgres(pool).open(runtime)
const reader = new pg.Client({ connectionString: database.url })
afterAll(async () => {
  await driver.close()
  await reader.end()
  await pool.end()
  await database.drop()
})

const types = [policy({ fastStart: true }), keyedPolicy({ fastStart: true }), policy({ type: 'other.v1' })]

/** All that keeps a plan: small and large batches, with and without keys, of one type and of several. */
async function live(round: string): Promise<void> {
  for (const count of [1, 150]) {
    await driver.enqueue(Array.from({ length: count }, () => newJob(runtime)))
    await driver.enqueue(Array.from({ length: count }, (_, n) => keyedJob(runtime, `${round}-${count}-${n}`)))
  }
  for (const policies of [types.slice(0, 1), types.slice(1, 2), types]) {
    const jobs = await driver.fetch({ workerId: 'w', queue: 'default', limit: 60, policies })
    expect(jobs.length).toBeGreaterThan(0)
    const verdicts = await driver.settle(jobs.map(({ lease }) => ({ lease, action: complete() })))
    expect(new Set(verdicts.map(({ kind }) => kind))).toEqual(new Set(['settled']))
  }
}

beforeAll(async () => {
  await driver.ready()
  const identity = runtime.processes.self()
  await driver.registerWorker({ id: 'w', name: 'w', identity, queues: ['default'], types: [], concurrency: 1 })
  await live('first')
  await reader.connect()
  await reader.query(`SET enable_seqscan = off; SET random_page_cost = 1.1; SET jit = off`)
})

async function pids(): Promise<readonly number[]> {
  const { rows } = await reader.query<{ readonly pid: number }>(
    `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'chokaq main' ORDER BY pid`,
  )
  return rows.map(({ pid }) => pid)
}

function nodesOf(plan: Plan): readonly Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}

const growing = new Set(['jobs_hot', 'jobs_archive', 'jobs_dlq', 'idempotency_markers', 'effects'])

/** What is wrong with a node: it reads a table or an index without a bound, or sorts what it locks. */
function faultOf(node: Plan): string | undefined {
  const { 'Node Type': type, 'Relation Name': table = '', 'Index Cond': condition } = node
  if (type === 'LockRows') {
    return nodesOf(node).some((below) => /Sort$/.test(below['Node Type'])) ? 'Sort below LockRows' : undefined
  }
  if (type === 'Bitmap Index Scan') return condition === undefined ? `${type} of ${node['Index Name']}` : undefined
  if (!growing.has(table) || !/Scan$/.test(type) || type === 'Tid Scan' || type === 'Bitmap Heap Scan') return undefined
  return /^Index/.test(type) && condition !== undefined ? undefined : `${type} of ${table}`
}

async function faults(): Promise<readonly string[]> {
  const found: string[] = []
  for (const text of kept.keys()) {
    const { rows } = await reader.query<{ 'QUERY PLAN': readonly [{ Plan: Plan }] }>(
      `EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}`,
    )
    for (const node of rows.flatMap((row) => nodesOf(row['QUERY PLAN'][0].Plan))) {
      const fault = faultOf(node)
      if (fault !== undefined) found.push(`${fault} in ${text.trim().slice(0, 120)}`)
    }
  }
  return found
}

describe('a kept plan', () => {
  const states: Readonly<Record<string, () => Promise<unknown>>> = {
    'of tables nobody has looked at': () => Promise.resolve(),
    'of empty tables': () =>
      database
        .query(`DELETE FROM chokaq.jobs_hot; DELETE FROM chokaq.jobs_archive; DELETE FROM chokaq.idempotency_markers`)
        .then(() => database.query('VACUUM ANALYZE')),
    'of full ones': () => live('second').then(() => database.query('VACUUM ANALYZE')),
  }
  it.each(Object.entries(states))('%s reads no table from end to end', async (_, prepare) => {
    await prepare()
    // Fetch of one type and of three, enqueue with and without keys in two sizes, settle.
    expect(kept.size).toBeGreaterThanOrEqual(7)
    expect(await faults()).toEqual([])
  })

  it('that the session has forgotten costs nothing but its name', async () => {
    isForgetful = true
    await live('third')
    isForgetful = false
  })

  it('is done without where the client changes the texts, and no connection is thrown away for it', async () => {
    const other: StorageDriver = postgres(pool).open(runtime)
    await other.ready()
    isTracing = true
    for (let round = 0; round < 3; round += 1) await other.enqueue([newJob(runtime)])
    const before = await pids()
    for (let round = 0; round < 3; round += 1) await other.enqueue([newJob(runtime)])
    isTracing = false
    expect(await pids()).toEqual(before)
    await other.close()
  })
})
