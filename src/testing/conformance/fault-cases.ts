/**
 * A process may die at any moment. Before the commit nothing has happened; after it everything has, and whoever asks
 * again is told so. The fault points of the runtime stand in for the death.
 */
import type { FaultPoint } from '../../core/runtime.ts'
import { bury, complete, retry } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { day, keyedJob, keyOf, minute, newJob, policy, second } from './new-job.ts'
import { keyed, operator, plain, type Scene } from './scene.ts'

/** What a death at a fault point throws. */
class Died extends Error {}

/** Runs a call that dies at the point; it must not answer. */
async function dying(scene: Scene, point: FaultPoint, call: () => Promise<unknown>): Promise<void> {
  scene.runtime.faults.failAt(point, 1, () => {
    throw new Died(point)
  })
  const answered = await call().then(
    () => true,
    () => false,
  )
  scene.expect(answered, `a call that died at ${point} has no answer`).toBe(false)
  scene.expect(scene.runtime.faults.reached).toContain(point)
}

export const faultCases: CaseGroup = {
  title: 'deaths before and after the commit',
  cases: {
    'an enqueue that died before its commit left nothing, not even a count': async (scene) => {
      const { expect, runtime } = scene
      const jobs = [newJob(runtime), keyedJob(runtime, 'order-1')]
      await dying(scene, 'enqueue-before-commit', () => scene.driver.enqueue(jobs))
      expect(await scene.all('hot')).toEqual([])
      expect(await scene.counter('jobs.enqueued')).toBe(0)
      await scene.insert(...jobs)
    },

    'an enqueue whose reply was lost is found by the next one': async (scene) => {
      const { expect, runtime } = scene
      const job = newJob(runtime)
      await dying(scene, 'enqueue-committed', () => scene.driver.enqueue([job]))
      expect(await scene.send({ ...job, mayExist: true })).toEqual({ kind: 'resent' })
      expect(await scene.counter('jobs.enqueued')).toBe(1)
    },

    'a fetch that died before its commit took nothing': async (scene) => {
      const { id } = await scene.add()
      await dying(scene, 'fetch-before-commit', () => scene.fetch([plain]))
      scene.expect(await scene.place(id)).toBe('pending')
      scene.expect(await scene.fetch([plain])).toHaveLength(1)
    },

    'a fetch whose reply was lost leaves rows that their owner disowns': async (scene) => {
      const { expect } = scene
      const { id } = await scene.add()
      await dying(scene, 'fetch-committed', () => scene.fetch([policy({ fastStart: true })]))
      expect(await scene.place(id)).toBe('processing')
      await scene.elapse(minute)
      expect(await scene.disown(second)).toBe(1)
      expect(await scene.record(id)).toMatchObject({ state: 'pending', attempt: 0, crashCount: 0 })
    },

    'a claim or a start whose reply was lost is confirmed by asking again': async (scene) => {
      const { expect, runtime } = scene
      const { lease } = await scene.fetched(keyed)
      const claim = { lease, key: keyOf(runtime, 'order-1'), fingerprint: '1:x' }
      await dying(scene, 'claim-committed', () => scene.driver.claim([claim]))
      expect(await scene.driver.claim([claim])).toEqual([{ kind: 'claimed' }])
      await dying(scene, 'start-committed', () => scene.start(lease, keyed))
      expect(await scene.start(lease, keyed)).toMatchObject({ kind: 'started', attempt: 1 })
      expect(await scene.counter('idempotency.claims', 'claimed')).toBe(1)
    },

    'H9 a completion that died before its commit left neither archive nor marker nor child': async (scene) => {
      const { expect, runtime } = scene
      const job = await scene.runningKeyed('order-1')
      const child = newJob(runtime)
      const action = complete({ children: [child] })
      await dying(scene, 'settle-before-commit', () => scene.settle(job.lease, action))
      expect(await scene.place(job.lease.jobId)).toBe('processing')
      expect(await scene.place(child.id)).toBe('nowhere')
      expect(await scene.marker(keyOf(runtime, 'order-1').hash)).toBeUndefined()
      expect(await scene.counter('jobs.completed')).toBe(0)
      await scene.mustSettle(job.lease, action, 'completed')
    },

    'H9 a completion whose reply was lost is whole, and recognised': async (scene) => {
      const { expect, runtime } = scene
      const job = await scene.runningKeyed('order-1')
      const child = newJob(runtime)
      const action = complete({ children: [child] })
      await dying(scene, 'settle-committed', () => scene.settle(job.lease, action))
      expect(await scene.settle(job.lease, action)).toEqual({ kind: 'settled', outcome: 'completed', repeated: true })
      expect([await scene.place(job.lease.jobId), await scene.place(child.id)]).toEqual(['archive', 'pending'])
      expect(await scene.marker(keyOf(runtime, 'order-1').hash)).toMatchObject({ state: 'completed' })
      expect(await scene.counter('jobs.completed')).toBe(1)
    },

    'a retry whose reply was lost is charged once, also when the next owner has it by now': async (scene) => {
      const { expect } = scene
      const job = await scene.running()
      await dying(scene, 'settle-committed', () => scene.settle(job.lease, retry()))
      expect(await scene.settle(job.lease, retry())).toMatchObject({ outcome: 'retried', repeated: true })
      const again = await scene.fetchOne(plain, { workerId: 'worker-2' })
      expect(await scene.settle(job.lease, retry())).toEqual({ kind: 'lost' })
      expect(again.failureCount).toBe(1)
    },

    'a heartbeat that died before its commit did not beat': async (scene) => {
      const [before] = await scene.driver.readBeats()
      const request = { workerId: 'worker-1', concurrency: 1, runningCount: 0, bufferedCount: 0 }
      await dying(scene, 'heartbeat-before-commit', () => scene.driver.heartbeat(request))
      scene.expect(await scene.driver.readBeats()).toEqual([before])
    },

    'a rescue that died before its commit charged nobody, and is simply repeated': async (scene) => {
      const { expect } = scene
      const job = await scene.running()
      const rescue = () => scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      await dying(scene, 'rescue-before-commit', rescue)
      expect(await scene.record(job.lease.jobId)).toMatchObject({ state: 'processing', token: job.lease.token })
      expect(await scene.driver.readBeats()).toHaveLength(1)
      expect(await rescue()).toHaveLength(1)
      expect(await scene.record(job.lease.jobId)).toMatchObject({ crashCount: 1 })
    },

    'a rescue whose reply was lost is not charged again': async (scene) => {
      const { expect } = scene
      const job = await scene.running()
      const rescue = () => scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      await dying(scene, 'rescue-committed', rescue)
      expect(await rescue()).toEqual([])
      expect(await scene.record(job.lease.jobId)).toMatchObject({ state: 'pending', crashCount: 1 })
      expect(await scene.counter('jobs.rescued')).toBe(1)
    },

    'a prune that died before its commit deleted nothing': async (scene) => {
      const { expect } = scene
      const job = await scene.running()
      await scene.mustSettle(job.lease, complete(), 'completed')
      await scene.elapse(2 * day)
      const prune = () => scene.driver.prune({ limit: 10, archiveRetentionMs: day, dlqRetentionMs: day })
      await dying(scene, 'prune-before-commit', prune)
      expect(await scene.place(job.lease.jobId)).toBe('archive')
      expect(await scene.counter('jobs.pruned')).toBe(0)
      expect((await prune()).archivedCount).toBe(1)
    },

    'a resurrection that died before its commit left the dead where it was, unaudited': async (scene) => {
      const { expect } = scene
      const job = await scene.running()
      await scene.mustSettle(job.lease, bury(), 'dead')
      await dying(scene, 'resurrect-before-commit', () => scene.resurrect(job.lease.jobId))
      expect(await scene.place(job.lease.jobId)).toBe('dlq')
      expect(await scene.inspector.audit({ limit: 10, beforeId: undefined })).toEqual([])
      expect(await scene.resurrect(job.lease.jobId)).toMatchObject({ kind: 'resurrected' })
    },

    'after a death the connection goes on: no transaction is left open': async (scene) => {
      const { expect, runtime } = scene
      const other = await scene.second()
      await dying(scene, 'enqueue-before-commit', () => scene.driver.enqueue([newJob(runtime)]))
      await scene.add()
      expect(await other.enqueue([newJob(runtime)])).toEqual([{ kind: 'inserted' }])
      await scene.inspector.setQueue({ name: 'default', paused: false }, operator)
      expect(await scene.fetch([plain], { driver: other })).toHaveLength(2)
    },
  },
}
