// Every statement that this storage ran for one life of a job, asked for its plan: none may walk a table of jobs, and
// none may sort. What reads a whole partial index on purpose is named, with the reason.
import { describe, expect, it } from 'vitest'
import { openStorage, spyDriver } from '../../../test/storage/scratch-sqlite.ts'
import type { SettleAction } from '../../core/storage.ts'
import { keyedJob, newJob, policy } from '../../testing/conformance/new-job.ts'
import { createFakeRuntime } from '../../testing/fake-runtime.ts'

/** Reads of a whole partial index that are short by what the index holds. */
const boundedReads = [
  // Rows that workers own: as many as their slots and buffers.
  'INDEXED BY chokaq_jobs_hot_owned',
  // min() takes the first entry.
  'SELECT min(run_at) AS run_at FROM chokaq_jobs_hot INDEXED BY chokaq_jobs_hot_scheduled',
]

const complete: SettleAction = {
  kind: 'complete',
  result: null,
  markerLifeMs: 1_000,
  keep: { kind: 'full' },
  children: [],
}
const endings: readonly SettleAction[] = [
  complete,
  { ...complete, keep: { kind: 'stub', forMs: 1_000 } },
  { kind: 'retry', delayMs: 5, failure: null, charge: 'failure', reason: 'failed' },
  { kind: 'bury', reason: 'FatalError', failure: { name: 'Error', message: 'no' }, hold: false },
  { kind: 'defer', delayMs: 5 },
  { kind: 'release' },
  { kind: 'cancel', hold: false },
]

/** Uses every verb of the hot path once, and each ending. */
async function live(): Promise<{ readonly plans: ReadonlyMap<string, readonly string[]> }> {
  const runtime = createFakeRuntime()
  const driver = spyDriver()
  const storage = openStorage(':memory:', runtime, { driver })
  const identity = runtime.processes.self()
  const info = { id: 'worker', name: 'worker', identity, queues: ['default'], types: [], concurrency: 1 }
  await storage.registerWorker(info)
  const policies = [policy({ fastStart: true }), policy({ type: 'payment.capture.v1', keyed: true })]
  for (const action of endings) {
    const jobs = [newJob(runtime, { mayExist: true }), keyedJob(runtime, runtime.newId())]
    await storage.enqueue(jobs)
    const fetched = await storage.fetch({ workerId: 'worker', queue: 'default', limit: 5, policies })
    const [first = policy()] = policies
    await storage.start(
      fetched.map(({ lease, type }) => ({ lease, policy: policies.find((p) => p.type === type) ?? first })),
    )
    await storage.settle(fetched.map(({ lease }) => ({ lease, action })))
    await storage.settle(fetched.map(({ lease }) => ({ lease, action })))
  }
  await storage.heartbeat({ workerId: 'worker', concurrency: 1, runningCount: 0, bufferedCount: 0 })
  await storage.disown({ workerId: 'worker', inHand: [], fetchedBeforeMs: 9e15 })
  await runtime.advance(10)
  await storage.promote({ limit: 5 })
  await storage.prune({ limit: 5, archiveRetentionMs: 0, dlqRetentionMs: 0 })
  const [db] = driver.opened
  const plans = [...driver.prepared]
    .filter((sql) => /^(SELECT|INSERT|UPDATE|DELETE)/.test(sql))
    .map((sql) => [sql, db?.prepare<{ readonly detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)] as const)
    .map(([sql, plan]) => [sql, plan?.all(...nulls(sql)).map(({ detail }) => detail) ?? []] as const)
  return { plans: new Map(plans) }
}

const nulls = (sql: string): null[] => [...sql.matchAll(/\?/g)].map(() => null)

describe('query plans', () => {
  it('find rows by index and read them in its order', async () => {
    const { plans } = await live()
    const walks = [...plans].flatMap(([sql, details]) =>
      details
        .filter((detail) => /^SCAN chokaq_(jobs|idempotency)/.test(detail) || detail.includes('TEMP B-TREE'))
        .map((detail) => `${detail}: ${sql.replace(/\s+/g, ' ')}`),
    )
    expect(walks.filter((walk) => !boundedReads.some((read) => walk.includes(read)))).toEqual([])
    expect(plans.size).toBeGreaterThan(30)
  })

  it('read a fetch from the index of pending rows, in its order', async () => {
    const { plans } = await live()
    const fetches = [...plans].filter(([sql]) => sql.includes('INDEXED BY chokaq_jobs_hot_pending'))
    expect(fetches.length).toBeGreaterThanOrEqual(3)
    for (const [, details] of fetches) {
      expect(details.join()).toMatch(
        /^SEARCH chokaq_jobs_hot USING (COVERING )?INDEX chokaq_jobs_hot_pending \(queue=\? AND type=\?\)$/,
      )
    }
  })
})
