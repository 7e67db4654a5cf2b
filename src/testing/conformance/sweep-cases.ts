/** Promotion and retention: what moves because time passed. */
import { bury, cancel, complete } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { day, hour, keyedPolicy, keyOf, minute, newJob, second } from './new-job.ts'
import { operator, plain, type Scene } from './scene.ts'

const review = keyedPolicy({ whenInterrupted: 'review' })
const limits = { limit: 1000, archiveRetentionMs: 15 * day, dlqRetentionMs: 14 * day }

async function finished(scene: Scene, queue = 'default'): Promise<string> {
  const { lease } = await scene.running(plain, { queue }, { queue })
  await scene.mustSettle(lease, complete(), 'completed')
  return lease.jobId
}

async function dead(scene: Scene, queue = 'default'): Promise<string> {
  const { lease } = await scene.running(plain, { queue }, { queue })
  await scene.mustSettle(lease, bury(), 'dead')
  return lease.jobId
}

export const sweepCases: CaseGroup = {
  title: 'sweep: promote and prune',
  cases: {
    'promotion says when the next job is due': async (scene) => {
      const { expect, runtime } = scene
      expect(await scene.driver.promote({ limit: 10 })).toEqual({ promotedCount: 0, nextDueInMs: undefined })
      await scene.insert(
        newJob(runtime, { due: { kind: 'in', delayMs: hour } }),
        newJob(runtime, { due: { kind: 'in', delayMs: 2 * hour } }),
      )
      const first = await scene.driver.promote({ limit: 10 })
      expect(first.nextDueInMs).toBeLessThanOrEqual(hour)
      expect(first.nextDueInMs).toBeGreaterThan(hour - minute)
      await scene.elapse(hour + second)
      const later = await scene.driver.promote({ limit: 10 })
      expect(later.promotedCount).toBe(1)
      expect(later.nextDueInMs).toBeLessThan(hour)
      expect(later.nextDueInMs).toBeGreaterThan(hour - minute)
    },

    'promotion takes the earliest first, up to its limit, and says that more is due': async (scene) => {
      const { expect, runtime } = scene
      const jobs = [3, 1, 2].map((minutes) => newJob(runtime, { due: { kind: 'in', delayMs: minutes * minute } }))
      await scene.insert(...jobs)
      await scene.elapse(hour)
      const { promotedCount, nextDueInMs } = await scene.driver.promote({ limit: 2 })
      expect(promotedCount).toBe(2)
      expect(nextDueInMs).toBeLessThanOrEqual(0)
      const places = await Promise.all(jobs.map(({ id }) => scene.place(id)))
      expect(places).toEqual(['scheduled', 'pending', 'pending'])
      expect((await scene.driver.promote({ limit: 2 })).promotedCount).toBe(1)
    },

    'promotion changes nothing but the state': async (scene) => {
      const job = await scene.add({ due: { kind: 'in', delayMs: minute }, priority: 4, tags: ['eu'] })
      const before = await scene.record(job.id)
      await scene.elapse(2 * minute)
      await scene.driver.promote({ limit: 10 })
      scene.expect(await scene.record(job.id)).toEqual({ ...before, state: 'pending' })
    },

    'whoever listens hears of promoted jobs': async (scene) => {
      await scene.add({ due: { kind: 'in', delayMs: minute } })
      await scene.elapse(2 * minute)
      let calls = 0
      const stop = scene.driver.onWake(() => void (calls += 1))
      await scene.driver.promote({ limit: 10 })
      await scene.runtime.runUntil(() => calls > 0)
      stop()
      scene.expect(calls).toBeGreaterThan(0)
    },

    'history is pruned when it is older than its retention, and not before': async (scene) => {
      const { expect } = scene
      const [done, gone] = [await finished(scene), await dead(scene)]
      await scene.elapse(14 * day - minute)
      expect(await scene.driver.prune(limits)).toEqual({
        archivedCount: 0,
        deadCount: 0,
        markerCount: 0,
        effectCount: 0,
      })
      await scene.elapse(2 * minute)
      expect(await scene.driver.prune(limits)).toEqual({
        archivedCount: 0,
        deadCount: 1,
        markerCount: 0,
        effectCount: 0,
      })
      expect([await scene.place(done), await scene.place(gone)]).toEqual(['archive', 'nowhere'])
      await scene.elapse(day)
      expect(await scene.driver.prune(limits)).toEqual({
        archivedCount: 1,
        deadCount: 0,
        markerCount: 0,
        effectCount: 0,
      })
      expect(await scene.place(done)).toBe('nowhere')
      expect(await scene.counter('jobs.pruned')).toBe(2)
    },

    'age counts from the end of a job, not from its beginning': async (scene) => {
      const { lease } = await scene.running()
      await scene.elapse(20 * day)
      await scene.mustSettle(lease, complete(), 'completed')
      scene.expect((await scene.driver.prune(limits)).archivedCount).toBe(0)
      scene.expect(await scene.place(lease.jobId)).toBe('archive')
    },

    'a queue may keep its history shorter or longer than the others': async (scene) => {
      const { expect } = scene
      const short = { name: 'short', archiveRetentionMs: hour, dlqRetentionMs: hour }
      const long = { name: 'long', archiveRetentionMs: 90 * day, dlqRetentionMs: 90 * day }
      for (const change of [short, long]) await scene.inspector.setQueue(change, operator)
      const ids: Record<string, string[]> = {}
      for (const queue of ['short', 'long', 'default'])
        ids[queue] = [await finished(scene, queue), await dead(scene, queue)]
      const left = async (): Promise<string[]> => {
        const rows = [...(await scene.all('archive')), ...(await scene.all('dlq'))]
        return [...new Set(rows.map((row) => row.queue))].sort()
      }
      await scene.elapse(2 * hour)
      expect(await scene.driver.prune(limits)).toMatchObject({ archivedCount: 1, deadCount: 1 })
      expect(await left()).toEqual(['default', 'long'])
      await scene.elapse(20 * day)
      expect(await scene.driver.prune(limits)).toMatchObject({ archivedCount: 1, deadCount: 1 })
      expect(await left()).toEqual(['long'])
      await scene.inspector.setQueue({ name: 'long', archiveRetentionMs: null, dlqRetentionMs: null }, operator)
      expect(await scene.driver.prune(limits)).toMatchObject({ archivedCount: 1, deadCount: 1 })
      expect(await left()).toEqual([])
    },

    'a job in doubt is never pruned, nor is its marker': async (scene) => {
      const { expect } = scene
      const { lease } = await scene.runningKeyed('order-1', review)
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      await scene.elapse(400 * day)
      expect(await scene.driver.prune(limits)).toEqual({
        archivedCount: 0,
        deadCount: 0,
        markerCount: 0,
        effectCount: 0,
      })
      expect(await scene.record(lease.jobId)).toMatchObject({ pillar: 'dlq', inDoubt: true })
      expect(await scene.marker(keyOf(scene.runtime, 'order-1').hash)).toMatchObject({ state: 'in_doubt' })
    },

    'a stub goes when its own time is over, whatever the retention': async (scene) => {
      const { expect } = scene
      const { lease } = await scene.running()
      await scene.mustSettle(lease, complete({ keep: { kind: 'stub', forMs: hour } }), 'completed')
      await scene.elapse(hour - minute)
      expect((await scene.driver.prune(limits)).archivedCount).toBe(0)
      await scene.elapse(2 * minute)
      expect((await scene.driver.prune(limits)).archivedCount).toBe(1)
      expect(await scene.place(lease.jobId)).toBe('nowhere')
      expect(await scene.counter('jobs.pruned')).toBe(1)
    },

    'markers go when they have expired, and live ones stay': async (scene) => {
      const { expect, runtime } = scene
      for (const [key, markerLifeMs] of [
        ['order-1', hour],
        ['order-2', 60 * day],
      ] as const) {
        const { lease } = await scene.runningKeyed(key)
        await scene.mustSettle(lease, complete({ markerLifeMs }), 'completed')
      }
      await scene.elapse(2 * hour)
      expect(await scene.driver.prune(limits)).toMatchObject({ archivedCount: 0, markerCount: 1 })
      expect(await scene.marker(keyOf(runtime, 'order-1').hash)).toBeUndefined()
      expect(await scene.marker(keyOf(runtime, 'order-2').hash)).toBeDefined()
    },

    'a marker outlives the history of its job': async (scene) => {
      const { expect, runtime } = scene
      const { lease } = await scene.runningKeyed('order-1')
      await scene.mustSettle(lease, complete({ markerLifeMs: 60 * day }), 'completed')
      await scene.elapse(20 * day)
      expect(await scene.driver.prune(limits)).toEqual({
        archivedCount: 1,
        deadCount: 0,
        markerCount: 0,
        effectCount: 0,
      })
      expect(await scene.marker(keyOf(runtime, 'order-1').hash)).toMatchObject({ jobId: lease.jobId })
    },

    'pruning stops at its limit and goes on with the next call': async (scene) => {
      const { expect, runtime } = scene
      await scene.insert(...Array.from({ length: 7 }, () => newJob(runtime)))
      const jobs = await scene.fetch([plain])
      await scene.driver.settle(jobs.map(({ lease }) => ({ lease, action: cancel() })))
      await scene.elapse(20 * day)
      expect((await scene.driver.prune({ ...limits, limit: 3 })).archivedCount).toBeLessThanOrEqual(3)
      expect((await scene.all('archive')).length).toBeGreaterThanOrEqual(4)
      for (let round = 0; round < 3; round += 1) await scene.driver.prune({ ...limits, limit: 3 })
      expect(await scene.all('archive')).toHaveLength(0)
      expect(await scene.counter('jobs.pruned')).toBe(7)
    },

    'pruning never touches active jobs, however old': async (scene) => {
      const { expect } = scene
      const waiting = await scene.add({ type: 'nobody.v1' })
      const running = await scene.running()
      await scene.elapse(400 * day)
      await scene.driver.prune(limits)
      expect([await scene.place(waiting.id), await scene.place(running.lease.jobId)]).toEqual(['pending', 'processing'])
    },

    'counters of the engine itself are added to the totals': async (scene) => {
      const { expect } = scene
      const row = { name: 'idempotency.claims', queue: 'default', type: 'a.v1', label: 'empty_key', value: 2 } as const
      await scene.driver.count([row, { ...row, type: 'b.v1' }])
      await scene.driver.count([{ ...row, value: 3 }])
      await scene.driver.count([])
      expect(await scene.counter('idempotency.claims', 'empty_key')).toBe(7)
    },
  },
}
