/** Queues: pausing, global limits, and what an operator sees of them. */
import { bury, complete, release, retry } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { day, minute, newJob, policy, second } from './new-job.ts'
import { operator, plain, type Scene } from './scene.ts'

const fast = policy({ fastStart: true })

async function addMany(scene: Scene, count: number, queue = 'default'): Promise<void> {
  await scene.insert(...Array.from({ length: count }, () => newJob(scene.runtime, { queue })))
}

async function limitTo(scene: Scene, maxConcurrency: number | null): Promise<void> {
  await scene.inspector.setQueue({ name: 'default', maxConcurrency }, operator)
}

export const queueCases: CaseGroup = {
  title: 'queues and limits',
  cases: {
    'a paused queue gives nothing, takes in everything, and goes on where it stopped': async (scene) => {
      const { expect } = scene
      await addMany(scene, 2)
      await scene.inspector.setQueue({ name: 'default', paused: true }, operator)
      await addMany(scene, 1)
      expect(await scene.fetch([plain])).toHaveLength(0)
      await scene.inspector.setQueue({ name: 'default', paused: false }, operator)
      expect(await scene.fetch([plain])).toHaveLength(3)
    },

    'pausing one queue leaves the others alone': async (scene) => {
      await addMany(scene, 1, 'other')
      await scene.inspector.setQueue({ name: 'default', paused: true }, operator)
      scene.expect(await scene.fetch([plain], { queue: 'other' })).toHaveLength(1)
    },

    'jobs that run go on when their queue is paused': async (scene) => {
      const job = await scene.running()
      await scene.inspector.setQueue({ name: 'default', paused: true }, operator)
      await scene.mustSettle(job.lease, complete(), 'completed')
      scene.expect(await scene.counter('jobs.completed')).toBe(1)
    },

    'a limit counts what is fetched and what runs, of all workers': async (scene) => {
      const { expect } = scene
      await limitTo(scene, 3)
      await addMany(scene, 10)
      const first = await scene.fetch([plain], { limit: 2 })
      expect(first).toHaveLength(2)
      for (const { lease } of first) await scene.mustStart(lease, plain)
      const next = await scene.fetch([plain], { workerId: 'worker-2', limit: 5 })
      expect(next).toHaveLength(1)
      expect(await scene.fetch([plain], { workerId: 'worker-3', limit: 5 })).toHaveLength(0)
    },

    'every way out of a lease gives its place back': async (scene) => {
      const { expect } = scene
      await limitTo(scene, 4)
      await addMany(scene, 20)
      const jobs = await scene.fetch([plain])
      expect(jobs).toHaveLength(4)
      await scene.driver.start(jobs.map(({ lease }) => ({ lease, policy: plain })))
      const actions = [complete(), retry({ delayMs: minute }), bury(), release]
      await scene.driver.settle(jobs.map(({ lease }, n) => ({ lease, action: actions[n] ?? release })))
      expect(await scene.fetch([plain], { limit: 9 })).toHaveLength(4)
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      expect(await scene.fetch([plain], { workerId: 'worker-2', limit: 9 })).toHaveLength(4)
    },

    'a limit holds for a fast start as well': async (scene) => {
      await limitTo(scene, 2)
      await addMany(scene, 5)
      scene.expect(await scene.fetch([fast])).toHaveLength(2)
      scene.expect(await scene.fetch([fast])).toHaveLength(0)
    },

    'a limit counts jobs of types that this worker does not know': async (scene) => {
      const { expect } = scene
      await limitTo(scene, 2)
      const other = policy({ type: 'report.build.v1' })
      await scene.add({ type: other.type })
      await addMany(scene, 5)
      await scene.fetchOne(other, { workerId: 'worker-2' })
      expect(await scene.fetch([plain])).toHaveLength(1)
    },

    'a limit may be changed and lifted while jobs run': async (scene) => {
      const { expect } = scene
      await limitTo(scene, 1)
      await addMany(scene, 10)
      expect(await scene.fetch([plain])).toHaveLength(1)
      await limitTo(scene, 3)
      expect(await scene.fetch([plain])).toHaveLength(2)
      await limitTo(scene, 1)
      expect(await scene.fetch([plain])).toHaveLength(0)
      await limitTo(scene, null)
      expect(await scene.fetch([plain])).toHaveLength(7)
    },

    'the limit of one queue is no business of another': async (scene) => {
      await limitTo(scene, 1)
      await addMany(scene, 3)
      await addMany(scene, 3, 'other')
      scene.expect(await scene.fetch([plain])).toHaveLength(1)
      scene.expect(await scene.fetch([plain], { queue: 'other' })).toHaveLength(3)
    },

    'a change of a queue leaves what it does not name': async (scene) => {
      const { expect } = scene
      const by = operator
      await scene.inspector.setQueue({ name: 'mail', paused: true, maxConcurrency: 5 }, by)
      await scene.inspector.setQueue({ name: 'mail', archiveRetentionMs: day }, by)
      const row = async (): Promise<unknown> => (await scene.inspector.queues()).find(({ name }) => name === 'mail')
      expect(await row()).toMatchObject({ paused: true, maxConcurrency: 5 })
      await scene.inspector.setQueue({ name: 'mail', paused: false }, by)
      expect(await row()).toMatchObject({ paused: false, maxConcurrency: 5 })
      await scene.inspector.setQueue({ name: 'mail', maxConcurrency: null }, by)
      expect(await row()).toMatchObject({ paused: false, maxConcurrency: undefined })
    },

    'the counts of a queue are those of its rows': async (scene) => {
      const { expect, runtime } = scene
      await addMany(scene, 7)
      await addMany(scene, 2, 'other')
      await scene.add({ due: { kind: 'in', delayMs: minute } })
      const jobs = await scene.fetch([plain], { limit: 4 })
      const [a, b] = jobs
      if (a !== undefined) await scene.mustStart(a.lease, plain)
      if (b !== undefined) await scene.mustSettle(b.lease, bury(), 'dead')
      await scene.elapse(10 * second)
      const rows = await scene.inspector.queues()
      const row = rows.find(({ name }) => name === 'default')
      expect(row).toMatchObject({
        paused: false,
        scheduledCount: 1,
        pendingCount: 3,
        fetchedCount: 2,
        processingCount: 1,
        deadCount: 1,
      })
      expect(row?.maxConcurrency).toBeUndefined()
      expect(row?.lagMs).toBeGreaterThanOrEqual(10 * second)
      expect(rows.find(({ name }) => name === 'other')).toMatchObject({ pendingCount: 2, fetchedCount: 0 })
      await scene.insert(newJob(runtime, { queue: 'empty', due: { kind: 'in', delayMs: minute } }))
      const empty = (await scene.inspector.queues()).find(({ name }) => name === 'empty')
      expect(empty).toMatchObject({ scheduledCount: 1, pendingCount: 0 })
      expect(empty?.lagMs).toBeUndefined()
    },

    'a queue that was only configured is listed, too': async (scene) => {
      await scene.inspector.setQueue({ name: 'later', paused: true }, operator)
      scene
        .expect((await scene.inspector.queues()).find(({ name }) => name === 'later'))
        .toMatchObject({ paused: true, pendingCount: 0, deadCount: 0 })
    },
  },
}
