/** How a job gets in: what is stored, when it is due, and what a batch with bad rows does. */
import type { NewJob } from '../../core/job.ts'
import type { CaseGroup } from './cases.ts'
import { day, hour, keyedJob, keyOf, minute, newJob, second } from './new-job.ts'
import { keyed, plain, type Scene } from './scene.ts'

/** A priority beyond -1000 to 1000: every storage refuses the row. */
const outOfRange = 5000

async function promoteAll(scene: Scene): Promise<number> {
  return (await scene.driver.promote({ limit: 1000 })).promotedCount
}

export const enqueueCases: CaseGroup = {
  title: 'enqueue',
  cases: {
    'a job that is due now is pending, with everything that was given': async (scene) => {
      const { runtime, expect } = scene
      const job = keyedJob(runtime, 'order-1', {
        priority: 7,
        queue: 'payments',
        tags: ['eu', 'vip'],
        tenant: 'acme',
        traceContext: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
        parentId: runtime.newId(),
      })
      await scene.insert(job)
      expect(await scene.record(job.id)).toMatchObject({
        pillar: 'hot',
        state: 'pending',
        type: job.type,
        queue: 'payments',
        payload: job.payload,
        result: null,
        priority: 7,
        tags: ['eu', 'vip'],
        tenant: 'acme',
        keyHash: job.key?.hash,
        keyPrefix: 'order-1',
        keyScope: 'payment.capture',
        fingerprint: job.fingerprint,
        generation: 1,
        attempt: 0,
        failureCount: 0,
        crashCount: 0,
        fetchCrashCount: 0,
        workerId: null,
        reason: null,
        failure: null,
        parentId: job.parentId,
        startedAtMs: null,
        finishedAtMs: null,
        cancelRequestedAtMs: null,
        inDoubt: false,
      })
      expect(await scene.counter('jobs.enqueued')).toBe(1)
    },

    'the payload is kept to the letter, spaces, order and numbers included': async (scene) => {
      const payload = '{ "b" : 1.0, "a":1e2,\n"b2":[ ] , "\\u00e9": "\\ud83d\\ude00" }'
      const job = await scene.add({ payload })
      scene.expect((await scene.record(job.id)).payload).toBe(payload)
      scene.expect((await scene.fetchOne(plain)).payload).toBe(payload)
    },

    'a time that has passed and a delay of nothing mean now': async (scene) => {
      const { expect } = scene
      const past = await scene.add({ due: { kind: 'at', atMs: (await scene.nowMs()) - day } })
      const none = await scene.add({ due: { kind: 'in', delayMs: 0 } })
      expect([await scene.place(past.id), await scene.place(none.id)]).toEqual(['pending', 'pending'])
    },

    'a delayed job is scheduled, is not fetched before its time, and is fetched after it': async (scene) => {
      const job = await scene.add({ due: { kind: 'in', delayMs: minute } })
      scene.expect(await scene.place(job.id)).toBe('scheduled')
      await scene.elapse(minute - second)
      scene.expect(await promoteAll(scene)).toBe(0)
      scene.expect(await scene.fetch([plain])).toHaveLength(0)
      await scene.elapse(2 * second)
      scene.expect(await promoteAll(scene)).toBe(1)
      scene.expect((await scene.fetchOne(plain)).lease.jobId).toBe(job.id)
    },

    'of two delayed jobs only the one whose time has come is promoted': async (scene) => {
      const due = await scene.add({ due: { kind: 'in', delayMs: minute } })
      const early = await scene.add({ due: { kind: 'in', delayMs: minute + 2 * second } })
      await scene.elapse(minute + second / 2)
      scene.expect(await promoteAll(scene)).toBe(1)
      scene.expect([await scene.place(due.id), await scene.place(early.id)]).toEqual(['pending', 'scheduled'])
    },

    'delays of 30 days and beyond 2^31 ms neither fire early nor get lost': async (scene) => {
      const { expect } = scene
      const month = await scene.add({ due: { kind: 'in', delayMs: 30 * day } })
      const distant = await scene.add({ due: { kind: 'at', atMs: (await scene.nowMs()) + 400 * day } })
      await scene.elapse(30 * day - hour)
      expect(await promoteAll(scene)).toBe(0)
      await scene.elapse(2 * hour)
      expect(await promoteAll(scene)).toBe(1)
      expect([await scene.place(month.id), await scene.place(distant.id)]).toEqual(['pending', 'scheduled'])
      await scene.elapse(370 * day)
      expect(await promoteAll(scene)).toBe(1)
      expect(await scene.place(distant.id)).toBe('pending')
    },

    'verdicts come in the order of the rows': async (scene) => {
      const { runtime, expect } = scene
      const first = await scene.addKeyed('order-1')
      const rows = [newJob(runtime), keyedJob(runtime, 'order-1'), newJob(runtime)]
      expect((await scene.driver.enqueue(rows)).map((verdict) => verdict.kind)).toEqual([
        'inserted',
        'active',
        'inserted',
      ])
      expect(await scene.place(first.id)).toBe('pending')
      expect(await scene.place(rows[1]?.id ?? '')).toBe('nowhere')
    },

    'of two rows of one batch with the same key the first gets in': async (scene) => {
      const { runtime, expect } = scene
      const [a, b, c] = [1, 1, 2].map((amount) => keyedJob(runtime, 'order-1', { says: { amount } })) as [
        NewJob,
        NewJob,
        NewJob,
      ]
      expect(await scene.driver.enqueue([a, b, c])).toEqual([
        { kind: 'inserted' },
        { kind: 'active', jobId: a.id, state: 'pending' },
        { kind: 'key-reused', jobId: a.id, holderPayload: a.payload },
      ])
      expect(await scene.counter('jobs.enqueued')).toBe(1)
    },

    'H16 the same key in two scopes is two keys': async (scene) => {
      const { runtime, expect } = scene
      await scene.addKeyed('order-1')
      const other = keyedJob(runtime, 'order-1', { key: keyOf(runtime, 'order-1', 'refund') })
      expect((await scene.send(other)).kind).toBe('inserted')
    },

    'a bad row costs its neighbours nothing': async (scene) => {
      const { runtime, expect } = scene
      const rows = [newJob(runtime), newJob(runtime, { priority: outOfRange }), keyedJob(runtime, 'order-1')]
      const verdicts = await scene.driver.enqueue(rows)
      expect(verdicts.map((verdict) => verdict.kind)).toEqual(['inserted', 'refused', 'inserted'])
      expect(await Promise.all(rows.map((row) => scene.place(row.id)))).toEqual(['pending', 'nowhere', 'pending'])
      expect(await scene.counter('jobs.enqueued')).toBe(2)
    },

    'a batch of bad rows alone is refused row by row': async (scene) => {
      const { runtime, expect } = scene
      const rows = [1, 2, 3].map(() => newJob(runtime, { priority: outOfRange }))
      const verdicts = await scene.driver.enqueue(rows)
      expect(verdicts.map((verdict) => verdict.kind)).toEqual(['refused', 'refused', 'refused'])
      expect(await scene.all('hot')).toHaveLength(0)
    },

    'a refused row with a key does not hold it': async (scene) => {
      const { runtime, expect } = scene
      const bad = keyedJob(runtime, 'order-1', { priority: outOfRange })
      const good = keyedJob(runtime, 'order-1')
      expect((await scene.driver.enqueue([bad, good])).map((verdict) => verdict.kind)).toEqual(['refused', 'inserted'])
    },

    'no rows are no work': async (scene) => {
      scene.expect(await scene.driver.enqueue([])).toEqual([])
    },

    'a thousand rows in one call all get in': async (scene) => {
      const rows = Array.from({ length: 1000 }, (_, n) => keyedJob(scene.runtime, `order-${n}`, { says: n }))
      await scene.insert(...rows)
      scene.expect(await scene.fetch([keyed], { limit: 1000 })).toHaveLength(1000)
      scene.expect(await scene.counter('jobs.enqueued')).toBe(1000)
    },

    'whoever listens hears of a job that is ready, and not after listening no more': async (scene) => {
      let calls = 0
      const stop = scene.driver.onWake(() => void (calls += 1))
      await scene.add()
      await scene.runtime.runUntil(() => calls > 0)
      const heard = calls
      stop()
      await scene.add()
      await scene.runtime.settle()
      scene.expect(calls).toBe(heard)
    },

    'a dead job on arrival is kept once per key and fingerprint': async (scene) => {
      const { runtime, expect } = scene
      const holder = await scene.addKeyed('order-1', { says: 1 })
      const arrival = (says: number): Promise<boolean> =>
        scene.driver.buryOnArrival({
          job: keyedJob(runtime, 'order-1', { says }),
          reason: 'KeyReused',
          failure: { name: 'Error', message: 'another amount' },
          duplicateOf: holder.id,
        })
      expect([await arrival(2), await arrival(2), await arrival(3)]).toEqual([true, false, true])
      const dead = await scene.all('dlq')
      expect(dead).toHaveLength(2)
      expect(dead[0]).toMatchObject({ reason: 'KeyReused', duplicateOf: holder.id, attempt: 0 })
      expect(await scene.marker(keyOf(runtime, 'order-1').hash)).toBeUndefined()
      expect(await scene.counter('jobs.dlq', 'KeyReused')).toBe(2)
    },
  },
}
