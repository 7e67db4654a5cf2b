/** Completion: job, marker, children and counters are one transaction (H9), and a stale owner takes no part (H8). */
import { complete, release, retry } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { day, hour, keyedJob, keyOf, minute, newJob } from './new-job.ts'
import { keyed, plain } from './scene.ts'

export const completeCases: CaseGroup = {
  title: 'settle: complete',
  cases: {
    'a completed job stands in the archive with its result and its times': async (scene) => {
      const { expect } = scene
      const job = await scene.running(plain, { tags: ['eu'], priority: 4, tenant: 'acme' })
      const before = await scene.record(job.lease.jobId)
      await scene.elapse(minute)
      await scene.mustSettle(job.lease, complete({ result: '{"ok": true}' }), 'completed')
      const record = await scene.record(job.lease.jobId)
      expect(record).toMatchObject({
        pillar: 'archive',
        state: 'completed',
        type: job.type,
        queue: job.queue,
        payload: job.payload,
        result: '{"ok": true}',
        tags: ['eu'],
        priority: 4,
        tenant: 'acme',
        attempt: 1,
        token: job.lease.token,
        reason: null,
        failure: null,
        duplicateOf: null,
        createdAtMs: before.createdAtMs,
        runAtMs: before.runAtMs,
        fetchedAtMs: before.fetchedAtMs,
        startedAtMs: before.startedAtMs,
        firstStartedAtMs: before.firstStartedAtMs,
        inDoubt: false,
      })
      expect((record.finishedAtMs ?? 0) - (record.startedAtMs ?? 0)).toBeGreaterThanOrEqual(minute)
      expect(await scene.counter('jobs.completed')).toBe(1)
      expect(await scene.counter('idempotency.claims')).toBe(0)
    },

    'no result is null, and not a text': async (scene) => {
      const job = await scene.running()
      await scene.mustSettle(job.lease, complete({ result: null }), 'completed')
      scene.expect((await scene.record(job.lease.jobId)).result).toBe(null)
    },

    'H9 H20 a keyed job leaves a marker with its result, in the same step': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      const { startedAtMs } = await scene.record(job.lease.jobId)
      await scene.mustSettle(job.lease, complete({ markerLifeMs: 30 * day }), 'completed')
      const marker = await scene.marker(keyOf(scene.runtime, 'order-1').hash)
      expect(marker).toMatchObject({
        state: 'completed',
        jobId: job.lease.jobId,
        generation: 1,
        fingerprint: job.fingerprint,
        result: '{"charge":"ch_1"}',
      })
      expect((marker?.expiresAtMs ?? 0) - (startedAtMs ?? 0)).toBeGreaterThanOrEqual(30 * day)
      expect((marker?.expiresAtMs ?? 0) - (startedAtMs ?? 0)).toBeLessThan(30 * day + minute)
      expect(await scene.counter('idempotency.claims', 'completed')).toBe(1)
    },

    'a job without a key leaves none': async (scene) => {
      const job = await scene.running()
      await scene.mustSettle(job.lease, complete(), 'completed')
      await scene.addKeyed('order-1')
      scene.expect(await scene.marker(keyOf(scene.runtime, 'order-1').hash)).toBeUndefined()
    },

    'a completion repeated after a lost reply is recognised and not counted twice': async (scene) => {
      const { runtime, expect } = scene
      const job = await scene.runningKeyed('order-1')
      const action = complete({ children: [newJob(runtime)] })
      await scene.mustSettle(job.lease, action, 'completed')
      const before = await scene.record(job.lease.jobId)
      expect(await scene.settle(job.lease, action)).toEqual({ kind: 'settled', outcome: 'completed', repeated: true })
      expect(await scene.record(job.lease.jobId)).toEqual(before)
      expect(await scene.counter('jobs.completed')).toBe(1)
      expect(await scene.counter('jobs.enqueued')).toBe(2)
      expect(await scene.counter('idempotency.claims', 'completed')).toBe(1)
    },

    'a stub keeps neither payload nor result, is recognised, and its marker still has the result': async (scene) => {
      const { runtime, expect } = scene
      const job = await scene.runningKeyed('order-1')
      const action = complete({ keep: { kind: 'stub', forMs: hour } })
      await scene.mustSettle(job.lease, action, 'completed')
      expect(await scene.record(job.lease.jobId)).toMatchObject({
        pillar: 'archive',
        state: 'completed',
        payload: null,
        result: null,
        history: null,
      })
      expect(await scene.settle(job.lease, action)).toEqual({ kind: 'settled', outcome: 'completed', repeated: true })
      expect((await scene.marker(keyOf(runtime, 'order-1').hash))?.result).toBe('{"charge":"ch_1"}')
    },

    'children commit with the completion': async (scene) => {
      const { runtime, expect } = scene
      const parent = await scene.running()
      const now = newJob(runtime, { parentId: parent.lease.jobId, priority: 1 })
      const later = keyedJob(runtime, 'order-2', {
        parentId: parent.lease.jobId,
        due: { kind: 'in', delayMs: hour },
        queue: 'other',
      })
      await scene.mustSettle(parent.lease, complete({ children: [now, later] }), 'completed')
      expect(await scene.record(now.id)).toMatchObject({ state: 'pending', parentId: parent.lease.jobId, priority: 1 })
      expect(await scene.record(later.id)).toMatchObject({ state: 'scheduled', queue: 'other', keyPrefix: 'order-2' })
      expect(await scene.counter('jobs.enqueued')).toBe(3)
      expect((await scene.fetchOne(plain)).lease.jobId).toBe(now.id)
    },

    'a child whose key is held is left out and counted; the others get in': async (scene) => {
      const { runtime, expect } = scene
      const holder = await scene.addKeyed('order-1', { queue: 'other' })
      const parent = await scene.running()
      const duplicate = keyedJob(runtime, 'order-1')
      const free = keyedJob(runtime, 'order-2')
      await scene.mustSettle(parent.lease, complete({ children: [duplicate, free] }), 'completed')
      expect(await scene.place(duplicate.id)).toBe('nowhere')
      expect(await scene.place(free.id)).toBe('pending')
      expect(await scene.place(holder.id)).toBe('pending')
      expect(await scene.counter('jobs.deduplicated')).toBe(1)
    },

    'a child whose key is held for another payload waits for a person': async (scene) => {
      const { runtime, expect } = scene
      const holder = await scene.addKeyed('order-1', { queue: 'other' })
      const parent = await scene.running()
      const changed = keyedJob(runtime, 'order-1', { says: { amount: 2 } })
      const verdict = await scene.settle(parent.lease, complete({ children: [changed] }))
      expect(verdict).toMatchObject({
        outcome: 'completed',
        deadChildren: [{ jobId: changed.id, failure: { code: 'CHOKAQ_KEY_REUSED' } }],
      })
      expect(await scene.record(changed.id)).toMatchObject({
        pillar: 'dlq',
        reason: 'KeyReused',
        duplicateOf: holder.id,
        payload: '{"amount":2}',
      })
      expect(await scene.place(holder.id)).toBe('pending')
    },

    'a child that is stored already is not stored twice': async (scene) => {
      const { runtime, expect } = scene
      const child = newJob(runtime, { queue: 'other', mayExist: true })
      await scene.insert(child)
      const parent = await scene.running()
      await scene.mustSettle(parent.lease, complete({ children: [child, child] }), 'completed')
      expect(await scene.all('hot')).toHaveLength(1)
      expect(await scene.counter('jobs.enqueued')).toBe(2)
    },

    'a child whose derived id is stored with another payload waits for a person, under a spare one': async (scene) => {
      const { runtime, expect } = scene
      const first = newJob(runtime, { queue: 'other', mayExist: true, payload: '{"n":1}' })
      await scene.insert(first)
      const parent = await scene.running()
      const spareId = runtime.newId()
      const changed = { ...first, payload: '{"n":2}', spareId }
      const verdict = await scene.settle(parent.lease, complete({ children: [changed] }))
      expect(verdict).toMatchObject({
        outcome: 'completed',
        deadChildren: [{ jobId: spareId, type: first.type, failure: { code: 'CHOKAQ_CHILD_REUSED' } }],
      })
      expect(await scene.record(spareId)).toMatchObject({
        pillar: 'dlq',
        reason: 'KeyReused',
        duplicateOf: first.id,
        payload: '{"n":2}',
      })
      expect(await scene.record(first.id)).toMatchObject({ pillar: 'hot', payload: '{"n":1}' })
      expect(await scene.place(parent.lease.jobId)).toBe('archive')
    },

    'a job that never started cannot be complete': async (scene) => {
      const { expect, runtime } = scene
      await scene.addKeyed('order-1')
      const { lease } = await scene.fetchOne(keyed)
      expect(await scene.settle(lease, complete({ children: [newJob(runtime)] }))).toEqual({ kind: 'lost' })
      expect(await scene.place(lease.jobId)).toBe('fetched')
      expect(await scene.marker(keyOf(runtime, 'order-1').hash)).toBeUndefined()
      expect(await scene.all('hot')).toHaveLength(1)
    },

    'a child may take over the key of its parent only as a duplicate': async (scene) => {
      const { runtime, expect } = scene
      const parent = await scene.runningKeyed('order-1')
      const child = keyedJob(runtime, 'order-1', { parentId: parent.lease.jobId })
      await scene.mustSettle(parent.lease, complete({ children: [child] }), 'completed')
      expect(await scene.place(child.id)).toBe('nowhere')
      expect(await scene.marker(keyOf(runtime, 'order-1').hash)).toMatchObject({ jobId: parent.lease.jobId })
    },

    'a child that the database refuses refuses the completion, and nothing changes': async (scene) => {
      const { runtime, expect } = scene
      const parent = await scene.runningKeyed('order-1')
      const good = newJob(runtime)
      const action = complete({ children: [good, newJob(runtime, { priority: 5000 })] })
      expect((await scene.settle(parent.lease, action)).kind).toBe('refused')
      expect(await scene.place(parent.lease.jobId)).toBe('processing')
      expect(await scene.place(good.id)).toBe('nowhere')
      expect(await scene.marker(keyOf(runtime, 'order-1').hash)).toBeUndefined()
      expect(await scene.counter('jobs.completed')).toBe(0)
      // What was undone was never counted: neither the child that had got in, nor the claim.
      expect(await scene.counter('jobs.enqueued')).toBe(1)
      expect(await scene.counter('idempotency.claims', 'completed')).toBe(0)
      await scene.mustSettle(parent.lease, complete(), 'completed')
    },

    'H5 R2 a live marker of another job parks the completion with all its evidence': async (scene) => {
      const { runtime, expect } = scene
      const job = await scene.runningKeyed('order-1')
      const hash = keyOf(runtime, 'order-1').hash
      const other = runtime.newId()
      await scene.plantMarker(hash, { jobId: other, result: '{"charge":"ch_0"}' })
      const child = newJob(runtime)
      await scene.mustSettle(job.lease, complete({ children: [child] }), 'conflict')
      expect(await scene.record(job.lease.jobId)).toMatchObject({
        pillar: 'dlq',
        state: 'dead',
        reason: 'CompleteConflict',
        payload: job.payload,
        result: '{"charge":"ch_1"}',
        duplicateOf: other,
        attempt: 1,
      })
      expect(await scene.marker(hash)).toMatchObject({ jobId: other, result: '{"charge":"ch_0"}' })
      expect(await scene.place(child.id)).toBe('nowhere')
      expect(await scene.counter('jobs.completed')).toBe(0)
      expect(await scene.counter('jobs.dlq', 'CompleteConflict')).toBe(1)
      expect(await scene.counter('idempotency.claims', 'complete_conflict')).toBe(1)
      expect(await scene.counter('idempotency.claims', 'released'), 'one end, one outcome').toBe(0)
      expect(await scene.settle(job.lease, complete())).toEqual({
        kind: 'settled',
        outcome: 'conflict',
        repeated: true,
      })
      expect(await scene.counter('idempotency.claims', 'complete_conflict')).toBe(1)
    },

    'an expired marker of another job is replaced': async (scene) => {
      const { runtime } = scene
      const job = await scene.runningKeyed('order-1')
      const hash = keyOf(runtime, 'order-1').hash
      await scene.plantMarker(hash, { expiresAtMs: (await scene.nowMs()) + minute })
      await scene.elapse(2 * minute)
      await scene.mustSettle(job.lease, complete(), 'completed')
      scene.expect(await scene.marker(hash)).toMatchObject({ state: 'completed', jobId: job.lease.jobId })
    },

    'the own marker in doubt is replaced by the completion': async (scene) => {
      const { runtime } = scene
      const job = await scene.runningKeyed('order-1')
      const hash = keyOf(runtime, 'order-1').hash
      await scene.plantMarker(hash, { state: 'in_doubt', jobId: job.lease.jobId })
      await scene.mustSettle(job.lease, complete(), 'completed')
      scene.expect(await scene.marker(hash)).toMatchObject({ state: 'completed', jobId: job.lease.jobId })
    },

    'H8 a stale owner cannot complete: not the job, not its marker, not its children': async (scene) => {
      const { runtime, expect } = scene
      const stale = await scene.runningKeyed('order-1')
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      const action = complete({ children: [newJob(runtime)] })
      expect(await scene.settle(stale.lease, action)).toEqual({ kind: 'lost' })
      const current = await scene.fetchOne(keyed, { workerId: 'worker-2' })
      await scene.mustStart(current.lease, keyed)
      expect(await scene.settle(stale.lease, action)).toEqual({ kind: 'lost' })
      expect(await scene.record(stale.lease.jobId)).toMatchObject({ state: 'processing', token: current.lease.token })
      expect(await scene.marker(keyOf(runtime, 'order-1').hash)).toBeUndefined()
      expect(await scene.counter('jobs.completed')).toBe(0)
      await scene.mustSettle(current.lease, complete(), 'completed')
      expect(await scene.settle(stale.lease, action)).toEqual({ kind: 'lost' })
    },

    'a completion after the own release or retry finds nothing to complete': async (scene) => {
      for (const first of [release, retry()]) {
        const job = await scene.running()
        await scene.settle(job.lease, first)
        await scene.settle(job.lease, complete())
        scene.expect(await scene.place(job.lease.jobId)).toBe('pending')
        scene.expect(await scene.counter('jobs.completed')).toBe(0)
        const again = await scene.fetchOne(plain)
        scene.expect(await scene.settle(job.lease, complete())).toEqual({ kind: 'lost' })
        await scene.mustStart(again.lease, plain)
        await scene.mustSettle(again.lease, { kind: 'cancel', hold: false }, 'cancelled')
      }
    },

    'a cancel that was asked for does not undo what is finished': async (scene) => {
      const job = await scene.running()
      await scene.inspector.cancel(job.lease.jobId, { actor: 'ada', note: 'too late' })
      await scene.mustSettle(job.lease, complete(), 'completed')
      scene.expect(await scene.record(job.lease.jobId)).toMatchObject({ pillar: 'archive', state: 'completed' })
    },
  },
}
