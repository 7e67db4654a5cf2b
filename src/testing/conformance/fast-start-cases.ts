/**
 * Fast start: the fetch itself starts a row where nothing can be lost by it. Every condition is taken away once; the row
 * must then come as `fetched` and go through the gate.
 */
import { retry } from './actions.ts'
import { fromTable, type CaseGroup } from './cases.ts'
import { hour, keyedJob, keyedPolicy, keyOf, minute, newJob, policy, second } from './new-job.ts'
import { operator, type Scene } from './scene.ts'

const fast = policy({ fastStart: true })
const fastKeyed = keyedPolicy({ fastStart: true })

interface GateRow {
  readonly because: string
  readonly prepare: (scene: Scene) => Promise<void>
  readonly policy?: typeof fast
}

/** What makes a fast type take the gate. */
const gates: readonly GateRow[] = [
  {
    because: 'its type takes the gate',
    policy: policy({ fastStart: false }),
    prepare: async (scene) => void (await scene.add()),
  },
  {
    because: 'it is a suspect: it ran when its worker died',
    async prepare(scene) {
      await scene.add()
      await scene.fetchOne(fast, { workerId: 'gone' })
      await scene.driver.rescue({ deadWorkerIds: ['gone'], limit: 10 })
    },
  },
  {
    because: 'it has crashed after a gated start',
    async prepare(scene) {
      await scene.running(policy({ fastStart: false }), {}, { workerId: 'gone' })
      await scene.driver.rescue({ deadWorkerIds: ['gone'], limit: 10 })
    },
  },
  {
    because: 'it is keyed, and its key is not on the row yet',
    policy: fastKeyed,
    prepare: async (scene) => void (await scene.add({ type: fastKeyed.type })),
  },
  {
    because: 'its retry lifetime is over',
    policy: policy({ fastStart: true, retryLifetimeMs: minute }),
    async prepare(scene) {
      const job = await scene.running()
      await scene.mustSettle(job.lease, retry({ delayMs: 2 * minute }), 'retried')
      await scene.elapse(3 * minute)
      await scene.driver.promote({ limit: 10 })
    },
  },
  {
    because: 'a live marker of another job has its key',
    policy: fastKeyed,
    async prepare(scene) {
      const job = keyedJob(scene.runtime, 'order-1')
      await scene.insert(job)
      await scene.plantMarker(keyOf(scene.runtime, 'order-1').hash)
    },
  },
  {
    because: 'a marker of another job that ends later has its key',
    policy: fastKeyed,
    async prepare(scene) {
      const job = keyedJob(scene.runtime, 'order-1')
      await scene.insert(job)
      const expiresAtMs = (await scene.nowMs()) + hour
      await scene.plantMarker(keyOf(scene.runtime, 'order-1').hash, { expiresAtMs, state: 'terminal' })
    },
  },
]

const gated = fromTable(
  gates,
  ({ because }) => `no fast start where ${because}`,
  async (scene, { prepare, policy: of = fast }) => {
    await prepare(scene)
    const before = (await scene.all('hot')).at(0)
    const job = await scene.fetchOne(of)
    scene.expect(job.state).toBe('fetched')
    scene.expect(job.attempt).toBe(before?.attempt)
    scene.expect(await scene.record(job.lease.jobId)).toMatchObject({ state: 'fetched', attempt: before?.attempt })
  },
)

export const fastStartCases: CaseGroup = {
  title: 'fast start',
  cases: {
    'a fetched job of a fast type runs already': async (scene) => {
      const { expect } = scene
      await scene.add()
      const job = await scene.fetchOne(fast)
      expect(job).toMatchObject({ state: 'processing', attempt: 1 })
      const record = await scene.record(job.lease.jobId)
      expect(record).toMatchObject({ state: 'processing', attempt: 1, workerId: 'worker-1' })
      expect((record.startedAtMs ?? 0) - (record.fetchedAtMs ?? 0)).toBeLessThan(second)
      expect(job.firstStartedAtMs).toBe(record.firstStartedAtMs)
      expect(await scene.counter('idempotency.claims')).toBe(0)
    },

    'a keyed job with its key on the row starts and counts as claimed': async (scene) => {
      await scene.addKeyed('order-1')
      const job = await scene.fetchOne(fastKeyed)
      scene.expect(job).toMatchObject({ state: 'processing', attempt: 1 })
      scene.expect(await scene.counter('idempotency.claims', 'claimed')).toBe(1)
    },

    'an expired marker does not stand in the way of a fast start': async (scene) => {
      const job = await scene.addKeyed('order-1')
      const expiresAtMs = (await scene.nowMs()) + minute
      await scene.plantMarker(keyOf(scene.runtime, 'order-1').hash, { expiresAtMs })
      await scene.elapse(minute + second)
      const fetched = await scene.fetchOne(fastKeyed)
      scene.expect(fetched).toMatchObject({ state: 'processing', lease: { jobId: job.id } })
    },

    ...gated,

    'rows that may and rows that may not start come in one fetch': async (scene) => {
      const { runtime, expect } = scene
      const gate = policy({ type: 'report.build.v1', whenInterrupted: 'review' })
      await scene.insert(newJob(runtime, { priority: 2 }), newJob(runtime, { type: gate.type, priority: 1 }))
      const jobs = await scene.fetch([fast, gate])
      expect(jobs.map((job) => [job.type, job.state, job.attempt])).toEqual([
        [fast.type, 'processing', 1],
        [gate.type, 'fetched', 0],
      ])
    },

    'a second start of a fast-started job after a lost reply is recognised': async (scene) => {
      await scene.add()
      const job = await scene.fetchOne(fast)
      scene.expect(await scene.start(job.lease, fast)).toMatchObject({ kind: 'started', attempt: 1 })
      scene.expect((await scene.record(job.lease.jobId)).attempt).toBe(1)
    },

    'a retry of a fast-started job may start fast again, and keeps its first start': async (scene) => {
      const { expect } = scene
      await scene.add()
      const first = await scene.fetchOne(fast)
      await scene.elapse(minute)
      await scene.mustSettle(first.lease, retry(), 'retried')
      const again = await scene.fetchOne(fast)
      expect(again).toMatchObject({ state: 'processing', attempt: 2, failureCount: 1 })
      expect(again.firstStartedAtMs).toBe(first.firstStartedAtMs)
      const record = await scene.record(again.lease.jobId)
      expect((record.startedAtMs ?? 0) - (record.firstStartedAtMs ?? 0)).toBeGreaterThanOrEqual(minute)
    },

    'nothing of a paused queue is fetched, and so nothing is started': async (scene) => {
      const job = await scene.add()
      await scene.inspector.setQueue({ name: 'default', paused: true }, operator)
      scene.expect(await scene.fetch([fast])).toHaveLength(0)
      scene.expect(await scene.place(job.id)).toBe('pending')
    },
  },
}
