/** What becomes of the jobs of a dead worker: who pays, who goes back, who needs a person. */
import { bury, complete, retry } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { keyedPolicy, keyOf, newJob, policy } from './new-job.ts'
import { keyed, operator, plain, type Scene } from './scene.ts'
import type { RescuedJob, TypePolicy } from '../../core/storage.ts'

const fast = policy({ fastStart: true })
const review = keyedPolicy({ whenInterrupted: 'review' })

/** `worker-1` dies; everything it had is taken back. */
function rescue(scene: Scene, limit = 100): Promise<readonly RescuedJob[]> {
  return scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit })
}

/** The worker takes the job again, starts it through the gate, and dies with it. */
async function crashOnce(scene: Scene, of: TypePolicy): Promise<readonly RescuedJob[]> {
  const job = await scene.fetchOne(of)
  scene.expect(job.state, 'a job with a past takes the gate').toBe('fetched')
  await scene.mustStart(job.lease, of)
  return rescue(scene)
}

export const rescueCases: CaseGroup = {
  title: 'rescue',
  cases: {
    'a job that never started goes back and counts a fetch crash': async (scene) => {
      const { expect } = scene
      const job = await scene.fetched()
      expect(await rescue(scene)).toEqual([
        {
          jobId: job.lease.jobId,
          type: job.type,
          queue: job.queue,
          workerId: 'worker-1',
          went: 'pending',
          crashed: false,
        },
      ])
      const record = await scene.record(job.lease.jobId)
      expect(record).toMatchObject({
        state: 'pending',
        workerId: null,
        attempt: 0,
        crashCount: 0,
        fetchCrashCount: 1,
      })
      expect(record.token).toBeGreaterThan(job.lease.token)
      expect(await scene.counter('jobs.rescued')).toBe(1)
      expect((await scene.fetchOne(plain)).suspect).toBe(false)
    },

    'ten fetch crashes are survived, the eleventh is not': async (scene) => {
      const { expect } = scene
      const { id } = await scene.add()
      for (let crash = 1; crash <= 10; crash += 1) {
        await scene.fetchOne(plain)
        expect((await rescue(scene)).map(({ went }) => went)).toEqual(['pending'])
        expect((await scene.record(id)).fetchCrashCount).toBe(crash)
      }
      await scene.fetchOne(plain)
      expect((await rescue(scene)).map(({ went }) => went)).toEqual(['dead'])
      expect(await scene.record(id)).toMatchObject({ pillar: 'dlq', reason: 'Interrupted', attempt: 0, inDoubt: false })
      expect(await scene.counter('jobs.dlq', 'Interrupted')).toBe(1)
    },

    'a crash of a fast start makes a suspect and charges nothing': async (scene) => {
      const { expect } = scene
      await scene.add()
      const job = await scene.fetchOne(fast)
      expect((await rescue(scene)).map(({ went, crashed }) => [went, crashed])).toEqual([['pending', true]])
      expect(await scene.record(job.lease.jobId)).toMatchObject({
        state: 'pending',
        attempt: 1,
        crashCount: 0,
        fetchCrashCount: 0,
      })
      expect(await scene.fetchOne(fast)).toMatchObject({ state: 'fetched', suspect: true, attempt: 1 })
    },

    'a crash after the gate is charged; more than the budget is the end': async (scene) => {
      const { expect } = scene
      const { id } = await scene.add()
      for (let crash = 1; crash <= 2; crash += 1) {
        expect((await crashOnce(scene, plain)).map(({ went, crashed }) => [went, crashed])).toEqual([['pending', true]])
        expect(await scene.record(id)).toMatchObject({ state: 'pending', crashCount: crash, failureCount: 0 })
      }
      expect((await crashOnce(scene, plain)).map(({ went }) => went)).toEqual(['dead'])
      const record = await scene.record(id)
      expect(record).toMatchObject({ pillar: 'dlq', reason: 'Interrupted', attempt: 3, inDoubt: false })
      expect(record.failure).not.toBe(null)
      expect(await scene.counter('jobs.rescued')).toBe(3)
      expect(await scene.counter('jobs.dlq', 'Interrupted')).toBe(1)
    },

    'a keyed job that crashes too often gives its key free, without a marker': async (scene) => {
      const { expect } = scene
      await scene.addKeyed('order-1')
      const strict = keyedPolicy({ crashBudget: 0 })
      await crashOnce(scene, strict)
      expect(await scene.marker(keyOf(scene.runtime, 'order-1').hash)).toBeUndefined()
      expect(await scene.counter('idempotency.claims', 'released')).toBe(1)
      await scene.addKeyed('order-1')
    },

    'the budgets are those of the start, per job': async (scene) => {
      const { expect } = scene
      const { id } = await scene.add()
      const strict = policy({ crashBudget: 0 })
      expect((await crashOnce(scene, strict)).map(({ went }) => went)).toEqual(['dead'])
      expect((await scene.record(id)).reason).toBe('Interrupted')
    },

    'H30 a started job under review is buried in doubt at once': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1', review)
      expect((await rescue(scene)).map(({ went, crashed }) => [went, crashed])).toEqual([['dead', true]])
      expect(await scene.record(job.lease.jobId)).toMatchObject({ pillar: 'dlq', reason: 'Interrupted', inDoubt: true })
      const marker = await scene.marker(keyOf(scene.runtime, 'order-1').hash)
      expect(marker).toMatchObject({ state: 'in_doubt', jobId: job.lease.jobId, fingerprint: job.fingerprint })
      expect(marker?.expiresAtMs).toBeUndefined()
    },

    'a job under review that never started goes back free': async (scene) => {
      const { expect } = scene
      const { id } = await scene.addKeyed('order-1')
      await scene.fetchOne(review)
      expect((await rescue(scene)).map(({ went }) => went)).toEqual(['pending'])
      expect(await scene.record(id)).toMatchObject({ state: 'pending', crashCount: 0, inDoubt: false })
      expect(await scene.marker(keyOf(scene.runtime, 'order-1').hash)).toBeUndefined()
    },

    'a review that went back unharmed is judged anew by its next start': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1', review)
      await scene.mustSettle(job.lease, retry({ charge: 'nothing', reason: 'not-executed' }), 'retried')
      await scene.fetchOne(review)
      expect((await rescue(scene)).map(({ went, crashed }) => [went, crashed])).toEqual([['pending', false]])
      expect(await scene.record(job.lease.jobId)).toMatchObject({ crashCount: 0, fetchCrashCount: 1 })
    },

    'a cancel that was asked for is done by the rescue': async (scene) => {
      const { expect } = scene
      const never = await scene.fetched()
      const started = await scene.running()
      for (const { lease } of [never, started]) await scene.inspector.cancel(lease.jobId, operator)
      expect((await rescue(scene)).map(({ went }) => went)).toEqual(['cancelled', 'cancelled'])
      for (const { lease } of [never, started]) {
        expect(await scene.record(lease.jobId)).toMatchObject({ pillar: 'archive', state: 'cancelled' })
      }
      expect(await scene.counter('jobs.cancelled')).toBe(2)
    },

    'a cancel asked for under review does not hide the doubt': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1', review)
      await scene.inspector.cancel(job.lease.jobId, operator)
      expect((await rescue(scene)).map(({ went }) => went)).toEqual(['dead'])
      expect(await scene.record(job.lease.jobId)).toMatchObject({ pillar: 'dlq', inDoubt: true })
    },

    'only rows of dead workers and of workers without a row': async (scene) => {
      const { expect } = scene
      const dead = await scene.fetched()
      await scene.worker('worker-2')
      const living = await scene.fetched(plain, {}, { workerId: 'worker-2' })
      const orphan = await scene.fetched(plain, {}, { workerId: 'never-registered' })
      const rescued = (await rescue(scene)).map(({ jobId }) => jobId)
      expect([...rescued].sort()).toEqual([dead.lease.jobId, orphan.lease.jobId].sort())
      expect(await scene.record(living.lease.jobId)).toMatchObject({ state: 'fetched', workerId: 'worker-2' })
    },

    'rows of a retired worker are rescued without anybody naming it': async (scene) => {
      const { expect } = scene
      const job = await scene.running()
      await scene.driver.retireWorker('worker-1')
      const rescued = await scene.driver.rescue({ deadWorkerIds: [], limit: 10 })
      expect(rescued.map(({ jobId }) => jobId)).toEqual([job.lease.jobId])
    },

    'a dead worker keeps its row until nothing of it is left': async (scene) => {
      const { expect, runtime } = scene
      await scene.insert(newJob(runtime), newJob(runtime), newJob(runtime))
      expect(await scene.fetch([plain])).toHaveLength(3)
      expect(await rescue(scene, 2)).toHaveLength(2)
      expect(await scene.driver.readBeats()).toHaveLength(1)
      expect(await rescue(scene, 2)).toHaveLength(1)
      expect(await scene.driver.readBeats()).toHaveLength(0)
      const beat = { workerId: 'worker-1', concurrency: 1, runningCount: 0, bufferedCount: 0 }
      expect(await scene.driver.heartbeat(beat)).toEqual({ kind: 'unknown' })
    },

    'a dead worker without jobs loses its row': async (scene) => {
      scene.expect(await rescue(scene)).toEqual([])
      scene.expect(await scene.driver.readBeats()).toHaveLength(0)
    },

    'no dead workers, no orphans, no work': async (scene) => {
      await scene.running()
      scene.expect(await scene.driver.rescue({ deadWorkerIds: [], limit: 10 })).toEqual([])
      scene.expect(await scene.driver.readBeats()).toHaveLength(1)
    },

    'failures and crashes are counted apart': async (scene) => {
      const { expect } = scene
      const first = await scene.running()
      await scene.mustSettle(first.lease, retry(), 'retried')
      await crashOnce(scene, plain)
      const again = await scene.fetchOne(plain)
      expect(again).toMatchObject({ failureCount: 1, crashCount: 1, attempt: 2, suspect: true })
      await scene.mustStart(again.lease, plain)
      await scene.mustSettle(again.lease, complete(), 'completed')
      expect(await scene.record(again.lease.jobId)).toMatchObject({ failureCount: 1, crashCount: 1, attempt: 3 })
    },

    'what is settled already is not rescued': async (scene) => {
      const { expect } = scene
      const done = await scene.runningKeyed('order-1')
      await scene.mustSettle(done.lease, complete(), 'completed')
      const dead = await scene.runningKeyed('order-2', keyed)
      await scene.mustSettle(dead.lease, bury(), 'dead')
      expect(await rescue(scene)).toEqual([])
      expect([await scene.place(done.lease.jobId), await scene.place(dead.lease.jobId)]).toEqual(['archive', 'dlq'])
    },
  },
}
