/** How a worker gets jobs: which, in what order, with which lease. */
import type { NewJob } from '../../core/job.ts'
import { release } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { keyedJob, minute, newJob, policy, second } from './new-job.ts'
import { keyed, plain } from './scene.ts'

export const fetchCases: CaseGroup = {
  title: 'fetch',
  cases: {
    'a fetched job comes with all a handler needs': async (scene) => {
      const { runtime, expect } = scene
      const job = keyedJob(runtime, 'order-1', {
        priority: 3,
        tags: ['eu'],
        tenant: 'acme',
        traceContext: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      })
      await scene.insert(job)
      await scene.elapse(minute)
      const fetched = await scene.fetchOne(keyed)
      expect(fetched).toMatchObject({
        state: 'fetched',
        type: job.type,
        queue: 'default',
        payload: job.payload,
        priority: 3,
        tags: ['eu'],
        tenant: 'acme',
        key: job.key,
        fingerprint: job.fingerprint,
        generation: 1,
        attempt: 0,
        failureCount: 0,
        crashCount: 0,
        suspect: false,
        traceContext: job.traceContext,
      })
      expect(fetched.firstStartedAtMs).toBeUndefined()
      const record = await scene.record(job.id)
      expect(record).toMatchObject({ state: 'fetched', workerId: 'worker-1', token: fetched.lease.token, attempt: 0 })
      expect(record.createdAtMs).toBe(fetched.createdAtMs)
      expect(record.runAtMs).toBe(fetched.runAtMs)
      expect((record.fetchedAtMs ?? 0) - record.createdAtMs).toBeGreaterThanOrEqual(minute)
      expect(record.startedAtMs).toBe(null)
    },

    'busy queues are those with something pending of a type, and only asked ones': async (scene) => {
      const { runtime, expect, driver } = scene
      const types = [plain.type, keyed.type]
      const busy = async (...queues: string[]): Promise<readonly string[]> =>
        [...(await driver.busyQueues({ queues, types }))].sort()
      expect(await busy('default', 'mail')).toEqual([])
      await scene.insert(newJob(runtime, { queue: 'mail' }), keyedJob(runtime, 'k', { queue: 'it\'s "odd"' }))
      await scene.insert(newJob(runtime, { queue: 'later', due: { kind: 'in', delayMs: minute } }))
      await scene.insert(newJob(runtime, { queue: 'foreign', type: 'unknown.v1' }), newJob(runtime, { queue: 'post' }))
      expect(await busy('default', 'mail', 'it\'s "odd"', 'later', 'foreign')).toEqual(['it\'s "odd"', 'mail'])
      expect(await busy()).toEqual([])
      expect(await driver.busyQueues({ queues: ['mail'], types: [] })).toEqual([])
      await scene.fetchOne(plain, { queue: 'mail' })
      expect(await busy('mail')).toEqual([])
    },

    'what was left out comes back as undefined': async (scene) => {
      const { tenant, key, fingerprint, traceContext, tags } = await scene.fetched()
      scene
        .expect({ tenant, key, fingerprint, traceContext, tags })
        .toEqual({ tenant: undefined, key: undefined, fingerprint: undefined, traceContext: undefined, tags: [] })
    },

    'a higher priority goes first, then the earlier time, then the earlier id': async (scene) => {
      const { runtime, expect } = scene
      // Times, not delays: two jobs are due in the same millisecond.
      const nowMs = await scene.nowMs()
      const due = (laterMs: number) => ({ kind: 'at', atMs: nowMs + second + laterMs }) as const
      const jobs = [
        newJob(runtime, { priority: 0, due: due(8000) }),
        newJob(runtime, { priority: 5, due: due(9000) }),
        newJob(runtime, { priority: -5, due: due(0) }),
        newJob(runtime, { priority: 5, due: due(6000) }),
        newJob(runtime, { priority: 0, due: due(8000) }),
        newJob(runtime, { priority: 1000, due: due(9000) }),
        newJob(runtime, { priority: -1000, due: due(0) }),
      ]
      // The order of insertion must not matter.
      await scene.insert(...runtime.chance.shuffle(jobs))
      await scene.elapse(minute)
      await scene.driver.promote({ limit: 100 })
      const order: number[] = []
      for (let round = 0; round < 4; round += 1) {
        for (const job of await scene.fetch([plain], { limit: 2 })) {
          order.push(jobs.findIndex(({ id }) => id === job.lease.jobId))
        }
      }
      expect(order).toEqual([5, 3, 1, 0, 4, 2, 6])
    },

    'the order is one over all types, whatever the size of a fetch': async (scene) => {
      const { runtime, expect } = scene
      const { chance } = runtime
      const types = ['a.v1', 'b.v1', 'c.v1', 'd.v1']
      const nowMs = await scene.nowMs()
      // One type has far more jobs than the others, and a type may be in front for long.
      const jobs = Array.from({ length: 60 }, () => {
        const type = chance.chance(0.6) ? 'a.v1' : chance.pick(types)
        const due = { kind: 'at', atMs: nowMs + second + chance.int(0, 20) } as const
        return newJob(runtime, { type, priority: chance.int(0, 1), due })
      })
      await scene.insert(...chance.shuffle(jobs))
      await scene.elapse(minute)
      await scene.driver.promote({ limit: 100 })
      const timeOf = ({ due }: NewJob): number => (due.kind === 'at' ? due.atMs : 0)
      const expected = [...jobs].sort(
        (a, b) => b.priority - a.priority || timeOf(a) - timeOf(b) || (a.id < b.id ? -1 : 1),
      )
      const policies = types.map((type) => policy({ type }))
      const seen: string[] = []
      for (const limit of [1, 2, 3, 5, 8, 13, 100]) {
        seen.push(...(await scene.fetch(policies, { limit })).map(({ lease }) => lease.jobId))
      }
      expect(seen.map((id) => jobs.findIndex((job) => job.id === id))).toEqual(expected.map((job) => jobs.indexOf(job)))
    },

    'one fetch gives its rows in order, too': async (scene) => {
      const { runtime, expect } = scene
      const jobs = [3, 1, 2].map((priority) => newJob(runtime, { priority }))
      await scene.insert(...jobs)
      expect((await scene.fetch([plain])).map((job) => job.priority)).toEqual([3, 2, 1])
    },

    'no more than the limit': async (scene) => {
      await scene.insert(...[1, 2, 3, 4, 5].map(() => newJob(scene.runtime)))
      scene.expect(await scene.fetch([plain], { limit: 2 })).toHaveLength(2)
      scene.expect(await scene.fetch([plain], { limit: 2 })).toHaveLength(2)
      scene.expect(await scene.fetch([plain], { limit: 2 })).toHaveLength(1)
      scene.expect(await scene.fetch([plain], { limit: 2 })).toHaveLength(0)
    },

    'only the queue that was asked for': async (scene) => {
      const mail = await scene.add({ queue: 'mail' })
      await scene.add({ queue: 'other' })
      scene.expect((await scene.fetchOne(plain, { queue: 'mail' })).lease.jobId).toBe(mail.id)
      scene.expect(await scene.fetch([plain], { queue: 'mail' })).toHaveLength(0)
      scene.expect(await scene.fetch([plain], { queue: 'Mail' })).toHaveLength(0)
    },

    'only the types the worker registered': async (scene) => {
      const known = await scene.add()
      const other = await scene.add({ type: 'report.build.v1' })
      scene.expect((await scene.fetchOne(plain)).lease.jobId).toBe(known.id)
      scene.expect(await scene.place(other.id)).toBe('pending')
      scene.expect(await scene.fetch([])).toHaveLength(0)
      const both = [plain, policy({ type: 'report.build.v1' })]
      scene.expect((await scene.fetch(both)).map((job) => job.lease.jobId)).toEqual([other.id])
    },

    'tokens only rise, over all jobs and all fetches': async (scene) => {
      await scene.insert(...[1, 2, 3, 4, 5, 6].map(() => newJob(scene.runtime)))
      const tokens: number[] = []
      for (let round = 0; round < 3; round += 1) {
        const jobs = await scene.fetch([plain], { limit: 2 })
        const drawn = jobs.map((job) => job.lease.token)
        scene.expect(new Set(drawn).size).toBe(2)
        scene.expect(Math.min(...drawn)).toBeGreaterThan(Math.max(0, ...tokens))
        tokens.push(...drawn)
      }
    },

    'the next lease of the same job has a higher token': async (scene) => {
      const first = await scene.fetched()
      await scene.mustSettle(first.lease, release, 'released')
      const again = await scene.fetchOne(plain)
      scene.expect(again.lease.jobId).toBe(first.lease.jobId)
      scene.expect(again.lease.token).toBeGreaterThan(first.lease.token)
    },

    'a job is fetched once': async (scene) => {
      await scene.fetched()
      scene.expect(await scene.fetch([plain], { workerId: 'worker-2' })).toHaveLength(0)
    },

    'a retried job shows its past': async (scene) => {
      const { expect } = scene
      const first = await scene.running()
      await scene.mustSettle(
        first.lease,
        { kind: 'retry', delayMs: 0, failure: null, charge: 'failure', reason: 'failed' },
        'retried',
      )
      const again = await scene.fetchOne(plain)
      expect(again).toMatchObject({ attempt: 1, failureCount: 1, crashCount: 0, suspect: false, state: 'fetched' })
      expect(again.firstStartedAtMs).toBe((await scene.record(again.lease.jobId)).firstStartedAtMs)
      expect(again.firstStartedAtMs).toBeDefined()
    },
  },
}
