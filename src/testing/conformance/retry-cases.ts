/** What brings a job back to wait: retry, release, defer. */
import { parseHistory } from '../../core/failure.ts'
import { boom, cancel, complete, defer, release, retry } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { hour, keyedPolicy, keyOf, minute, policy, second } from './new-job.ts'
import { keyed, operator, plain } from './scene.ts'

const fast = policy({ fastStart: true })

export const retryCases: CaseGroup = {
  title: 'settle: retry, release, defer',
  cases: {
    'a retry without delay is pending at once, charged, with its failure': async (scene) => {
      const { expect } = scene
      const job = await scene.running()
      await scene.mustSettle(job.lease, retry(), 'retried')
      const record = await scene.record(job.lease.jobId)
      expect(record).toMatchObject({
        state: 'pending',
        failureCount: 1,
        attempt: 1,
        crashCount: 0,
        workerId: null,
        failure: boom,
      })
      expect(record.firstStartedAtMs).not.toBe(null)
      expect(parseHistory(record.history).map((entry) => [entry.attempt, entry.failure.message])).toEqual([
        [1, boom.message],
      ])
      expect(await scene.counter('jobs.failed')).toBe(1)
      expect(await scene.counter('jobs.retried')).toBe(1)
    },

    'a retry with a delay is scheduled and comes when it is due': async (scene) => {
      const { expect } = scene
      const job = await scene.running()
      const { startedAtMs } = await scene.record(job.lease.jobId)
      await scene.mustSettle(job.lease, retry({ delayMs: minute }), 'retried')
      const record = await scene.record(job.lease.jobId)
      expect(record.state).toBe('scheduled')
      expect(record.runAtMs - (startedAtMs ?? 0)).toBeGreaterThanOrEqual(minute)
      await scene.elapse(minute - second)
      expect(await scene.driver.promote({ limit: 10 })).toMatchObject({ promotedCount: 0 })
      await scene.elapse(2 * second)
      await scene.driver.promote({ limit: 10 })
      expect((await scene.fetchOne(plain)).lease.jobId).toBe(job.lease.jobId)
    },

    'a retry that costs nothing leaves the failures alone': async (scene) => {
      const { expect } = scene
      const job = await scene.running()
      await scene.mustSettle(job.lease, retry({ charge: 'nothing', reason: 'retry-after', failure: null }), 'retried')
      expect(await scene.record(job.lease.jobId)).toMatchObject({ failureCount: 0, attempt: 1, failure: null })
      expect(await scene.counter('jobs.retried')).toBe(1)
      expect(await scene.counter('jobs.failed')).toBe(0)
    },

    'the history keeps every attempt and the row the last failure': async (scene) => {
      const { expect } = scene
      const messages = ['first', 'second', 'third']
      await scene.add()
      let jobId = ''
      for (const message of messages) {
        const job = await scene.fetchOne(plain)
        jobId = job.lease.jobId
        await scene.mustStart(job.lease, plain)
        await scene.mustSettle(job.lease, retry({ failure: { name: 'Error', message } }), 'retried')
      }
      const record = await scene.record(jobId)
      expect(record).toMatchObject({ failureCount: 3, attempt: 3, failure: { name: 'Error', message: 'third' } })
      expect(parseHistory(record.history).map((entry) => entry.failure.message)).toEqual(messages)
    },

    'a waiting retry keeps its key: its duplicates stay out': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      await scene.mustSettle(job.lease, retry({ delayMs: hour }), 'retried')
      const record = await scene.record(job.lease.jobId)
      scene.expect(record).toMatchObject({ state: 'scheduled', keyHash: keyOf(scene.runtime, 'order-1').hash })
      scene.expect(await scene.marker(record.keyHash ?? '')).toBeUndefined()
    },

    'a retry repeated after a lost reply is recognised and charged once': async (scene) => {
      const { expect } = scene
      for (const delayMs of [0, minute]) {
        const job = await scene.running()
        await scene.mustSettle(job.lease, retry({ delayMs }), 'retried')
        const before = await scene.record(job.lease.jobId)
        expect(await scene.settle(job.lease, retry({ delayMs }))).toEqual({
          kind: 'settled',
          outcome: 'retried',
          repeated: true,
        })
        expect(await scene.record(job.lease.jobId)).toEqual(before)
        await scene.inspector.cancel(job.lease.jobId, operator)
      }
      expect(await scene.counter('jobs.failed')).toBe(2)
      expect(await scene.counter('jobs.retried')).toBe(2)
    },

    'a retry of a job whose cancel was asked for cancels it': async (scene) => {
      const { expect } = scene
      const job = await scene.running()
      await scene.inspector.cancel(job.lease.jobId, operator)
      await scene.mustSettle(job.lease, retry({ delayMs: minute }), 'cancelled')
      expect(await scene.record(job.lease.jobId)).toMatchObject({ pillar: 'archive', state: 'cancelled' })
      expect(await scene.counter('jobs.cancelled')).toBe(1)
      expect(await scene.counter('jobs.retried')).toBe(0)
    },

    'a cancel that was asked for outlives a release: the job never starts': async (scene) => {
      const { expect } = scene
      const job = await scene.fetched()
      await scene.inspector.cancel(job.lease.jobId, operator)
      await scene.mustSettle(job.lease, release, 'released')
      const again = await scene.fetch([fast])
      expect(again.map(({ state }) => state)).toEqual(['fetched'])
      for (const { lease } of again) expect(await scene.start(lease, fast)).toEqual({ kind: 'cancelled' })
    },

    'H8 a stale owner cannot retry, release or defer': async (scene) => {
      const { expect } = scene
      const stale = await scene.running()
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      const current = await scene.fetchOne(plain, { workerId: 'worker-2' })
      await scene.mustStart(current.lease, plain)
      for (const action of [retry(), release, defer(), cancel()]) {
        expect(await scene.settle(stale.lease, action)).toEqual({ kind: 'lost' })
      }
      expect(await scene.record(stale.lease.jobId)).toMatchObject({
        state: 'processing',
        workerId: 'worker-2',
        failureCount: 0,
      })
      await scene.mustSettle(current.lease, complete(), 'completed')
    },

    'a released job never ran: it costs nothing and is free again': async (scene) => {
      const { expect } = scene
      const job = await scene.fetched()
      const { runAtMs } = await scene.record(job.lease.jobId)
      await scene.elapse(minute)
      await scene.mustSettle(job.lease, release, 'released')
      expect(await scene.record(job.lease.jobId)).toMatchObject({
        state: 'pending',
        attempt: 0,
        failureCount: 0,
        crashCount: 0,
        fetchCrashCount: 0,
        workerId: null,
        fetchedAtMs: null,
        startedAtMs: null,
        firstStartedAtMs: null,
        runAtMs,
      })
      expect(await scene.fetch([plain])).toHaveLength(1)
    },

    'the release of a fast start gives the attempt back': async (scene) => {
      const { expect } = scene
      await scene.add()
      const job = await scene.fetchOne(fast)
      expect(job.state).toBe('processing')
      await scene.mustSettle(job.lease, release, 'released')
      expect(await scene.record(job.lease.jobId)).toMatchObject({ state: 'pending', attempt: 0, startedAtMs: null })
      const again = await scene.fetchOne(fast)
      expect(again).toMatchObject({ state: 'processing', attempt: 1 })
    },

    'the lifetime of a job does not begin with a fast start that was released': async (scene) => {
      const short = policy({ fastStart: true, retryLifetimeMs: minute })
      await scene.add()
      const job = await scene.fetchOne(short)
      await scene.mustSettle(job.lease, release, 'released')
      await scene.elapse(hour)
      const again = await scene.fetchOne(short)
      scene.expect(again.state).toBe('processing')
    },

    'a release repeated after a lost reply gives one attempt back, not two': async (scene) => {
      const { expect } = scene
      await scene.add()
      const first = await scene.fetchOne(fast)
      await scene.mustSettle(first.lease, retry(), 'retried')
      const job = await scene.fetchOne(fast)
      expect(job.attempt).toBe(2)
      await scene.mustSettle(job.lease, release, 'released')
      expect(await scene.settle(job.lease, release)).toEqual({ kind: 'settled', outcome: 'released', repeated: true })
      expect((await scene.record(job.lease.jobId)).attempt).toBe(1)
    },

    'H11 a deferred duplicate waits and keeps the key it came with': async (scene) => {
      const { expect } = scene
      const { id } = await scene.addKeyed('order-1')
      const job = await scene.fetchOne(keyed)
      await scene.mustSettle(job.lease, defer(minute), 'deferred')
      expect(await scene.record(id)).toMatchObject({
        state: 'scheduled',
        attempt: 0,
        failureCount: 0,
        workerId: null,
        keyHash: keyOf(scene.runtime, 'order-1').hash,
      })
      expect(await scene.counter('jobs.deferred')).toBe(1)
      expect(await scene.settle(job.lease, defer(minute))).toMatchObject({ kind: 'settled', repeated: true })
      expect(await scene.counter('jobs.deferred')).toBe(1)
      await scene.elapse(minute + second)
      await scene.driver.promote({ limit: 10 })
      expect((await scene.fetchOne(keyed)).lease.jobId).toBe(id)
    },

    'a retry under review that proves nothing happened waits without a doubt': async (scene) => {
      const review = keyedPolicy({ whenInterrupted: 'review' })
      const job = await scene.runningKeyed('order-1', review)
      await scene.mustSettle(job.lease, retry({ reason: 'not-executed' }), 'retried')
      scene.expect(await scene.record(job.lease.jobId)).toMatchObject({ state: 'pending', inDoubt: false })
      scene.expect(await scene.marker(keyOf(scene.runtime, 'order-1').hash)).toBeUndefined()
    },
  },
}
