/**
 * Bringing the dead back. `continue` is the same operation again and must not hide what happened since; a new operation
 * says so, takes the next generation and replaces what the key left behind.
 */
import type { ResurrectVerdict } from '../../core/inspector.ts'
import { bury, complete, retry } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { day, fingerprint, hour, keyedJob, keyedPolicy, keyOf, minute, policy, second } from './new-job.ts'
import { closed, effectInDoubt, opened, states } from './ledger-steps.ts'
import { keyed, plain, type Scene } from './scene.ts'

const key = 'order-1'

async function deadKeyed(scene: Scene, reason: 'MaxRetriesExceeded' | 'FatalError' = 'FatalError'): Promise<string> {
  const { lease } = await scene.runningKeyed(key)
  await scene.mustSettle(lease, bury({ reason }), 'dead')
  return lease.jobId
}

async function inDoubt(scene: Scene): Promise<string> {
  const { lease } = await scene.runningKeyed(key, keyedPolicy({ whenInterrupted: 'review' }))
  await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
  return lease.jobId
}

/** The same operation done by another job, while the first one was dead. */
async function doneByAnother(scene: Scene): Promise<string> {
  const { lease } = await scene.runningKeyed(key)
  await scene.mustSettle(lease, complete(), 'completed')
  return lease.jobId
}

async function expectStillDead(scene: Scene, jobId: string): Promise<void> {
  scene.expect(await scene.place(jobId)).toBe('dlq')
  scene.expect(await scene.counter('jobs.resurrected')).toBe(0)
}

export const resurrectCases: CaseGroup = {
  title: 'resurrect',
  cases: {
    'a resurrected job starts anew: budgets and lifetime, but not its attempts': async (scene) => {
      const { expect } = scene
      const short = policy({ retryLifetimeMs: hour, crashBudget: 0 })
      const first = await scene.running(short)
      await scene.mustSettle(first.lease, retry(), 'retried')
      await scene.fetchOne(short)
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      const job = await scene.fetchOne(short)
      await scene.mustStart(job.lease, short)
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      const dead = await scene.record(job.lease.jobId)
      expect(dead).toMatchObject({ pillar: 'dlq', failureCount: 1, crashCount: 1, fetchCrashCount: 1, attempt: 2 })
      await scene.elapse(day)
      expect(await scene.resurrect(job.lease.jobId)).toEqual({ kind: 'resurrected', generation: 1 })
      const record = await scene.record(job.lease.jobId)
      expect(record.revision).toBeGreaterThan(dead.revision)
      expect(record).toMatchObject({
        pillar: 'hot',
        state: 'pending',
        payload: job.payload,
        failureCount: 0,
        crashCount: 0,
        fetchCrashCount: 0,
        attempt: 2,
        workerId: null,
        firstStartedAtMs: null,
        reason: null,
        inDoubt: false,
      })
      expect(record.token).toBeGreaterThan(job.lease.token)
      expect(await scene.counter('jobs.resurrected')).toBe(1)
      const again = await scene.fetchOne(short)
      expect(again).toMatchObject({ suspect: false, attempt: 2, failureCount: 0, crashCount: 0 })
      expect(await scene.start(again.lease, short)).toMatchObject({ kind: 'started', attempt: 3 })
    },

    'H8 the owner from before the death is stale': async (scene) => {
      const job = await scene.running()
      await scene.mustSettle(job.lease, bury(), 'dead')
      await scene.resurrect(job.lease.jobId)
      scene.expect(await scene.settle(job.lease, complete())).toEqual({ kind: 'lost' })
      scene.expect(await scene.settle(job.lease, bury())).toEqual({ kind: 'lost' })
      scene.expect(await scene.place(job.lease.jobId)).toBe('pending')
    },

    'H24 a resurrected job keeps its key: its duplicates stay out': async (scene) => {
      const { expect, runtime } = scene
      const jobId = await deadKeyed(scene)
      await scene.resurrect(jobId)
      expect(await scene.record(jobId)).toMatchObject({ keyHash: keyOf(runtime, key).hash })
      expect(await scene.send(keyedJob(runtime, key))).toEqual({ kind: 'active', jobId, state: 'pending' })
    },

    'H1 a resurrected job is no duplicate of itself, and completes': async (scene) => {
      const { expect, runtime } = scene
      const jobId = await deadKeyed(scene)
      await scene.resurrect(jobId)
      const again = await scene.fetchOne(keyed)
      await scene.mustStart(again.lease, keyed)
      await scene.mustSettle(again.lease, complete(), 'completed')
      expect(await scene.marker(keyOf(runtime, key).hash)).toMatchObject({ state: 'completed', jobId })
      expect(await scene.record(jobId)).toMatchObject({ pillar: 'archive', attempt: 2 })
    },

    'what is not dead cannot be resurrected': async (scene) => {
      const { expect, runtime } = scene
      const waiting = await scene.addKeyed(key, { due: { kind: 'in', delayMs: hour } })
      const done = await scene.running()
      await scene.mustSettle(done.lease, complete(), 'completed')
      for (const jobId of [waiting.id, done.lease.jobId, runtime.newId()]) {
        expect(await scene.resurrect(jobId)).toEqual({ kind: 'not-found' })
      }
      expect([await scene.place(waiting.id), await scene.place(done.lease.jobId)]).toEqual(['scheduled', 'archive'])
    },

    'a second operator who saw an older revision is told': async (scene) => {
      const { expect } = scene
      const jobId = await deadKeyed(scene)
      const { revision } = await scene.record(jobId)
      expect(await scene.resurrect(jobId, { revision: revision + 1 })).toEqual({ kind: 'changed', revision })
      await expectStillDead(scene, jobId)
      expect(await scene.resurrect(jobId, { revision })).toMatchObject({ kind: 'resurrected' })
    },

    'the revision rises with every death and return, so an old one never fits again': async (scene) => {
      const { expect } = scene
      const jobId = await deadKeyed(scene)
      const { revision } = await scene.record(jobId)
      await scene.resurrect(jobId, { revision })
      const { lease } = await scene.fetchOne(keyed)
      await scene.mustSettle(lease, bury(), 'dead')
      expect((await scene.record(jobId)).revision).toBeGreaterThan(revision)
      expect(await scene.resurrect(jobId, { revision })).toMatchObject({ kind: 'changed' })
      expect(await scene.place(jobId)).toBe('dlq')
    },

    'an active holder of the key stands in the way of both modes': async (scene) => {
      const { expect } = scene
      const jobId = await deadKeyed(scene)
      const holder = await scene.addKeyed(key)
      for (const mode of ['continue', 'new-operation'] as const) {
        expect(await scene.resurrect(jobId, { mode })).toEqual({ kind: 'active', jobId: holder.id })
      }
      await expectStillDead(scene, jobId)
      expect(await scene.place(holder.id)).toBe('pending')
    },

    'a live marker is shown, never skipped silently': async (scene) => {
      const { expect } = scene
      const jobId = await deadKeyed(scene)
      const other = await doneByAnother(scene)
      expect(await scene.resurrect(jobId)).toEqual({ kind: 'marked', jobId: other, state: 'completed' })
      await expectStillDead(scene, jobId)
    },

    'an expired marker does not stand in the way': async (scene) => {
      const { expect, runtime } = scene
      const jobId = await deadKeyed(scene)
      await scene.plantMarker(keyOf(runtime, key).hash, { expiresAtMs: (await scene.nowMs()) + minute })
      await scene.elapse(minute + second)
      expect(await scene.resurrect(jobId)).toMatchObject({ kind: 'resurrected' })
    },

    'a new operation replaces the marker and takes the next generation': async (scene) => {
      const { expect, runtime } = scene
      const jobId = await deadKeyed(scene)
      await doneByAnother(scene)
      expect(await scene.resurrect(jobId, { mode: 'new-operation' })).toEqual({ kind: 'resurrected', generation: 2 })
      expect(await scene.marker(keyOf(runtime, key).hash)).toBeUndefined()
      const again = await scene.fetchOne(keyed)
      expect(again).toMatchObject({ generation: 2, lease: { jobId } })
      await scene.mustStart(again.lease, keyed)
      await scene.mustSettle(again.lease, complete(), 'completed')
      expect(await scene.marker(keyOf(runtime, key).hash)).toMatchObject({ jobId, generation: 2, state: 'completed' })
    },

    'the next job of a key takes the newest generation that is known': async (scene) => {
      const { expect } = scene
      const jobId = await deadKeyed(scene)
      await scene.resurrect(jobId, { mode: 'new-operation' })
      const again = await scene.fetchOne(keyed)
      await scene.mustStart(again.lease, keyed)
      await scene.mustSettle(again.lease, complete({ markerLifeMs: minute }), 'completed')
      await scene.elapse(hour)
      const next = await scene.addKeyed(key)
      expect(await scene.record(next.id)).toMatchObject({ generation: 2 })
    },

    'a job in doubt is continued only by a decision; a new operation needs to know that nothing happened': async (
      scene,
    ) => {
      const { expect, runtime } = scene
      const jobId = await inDoubt(scene)
      expect(await scene.resurrect(jobId)).toEqual({ kind: 'in-doubt' })
      expect(await scene.resurrect(jobId, { mode: 'new-operation' })).toEqual({
        kind: 'not-absent',
        effects: [],
        waitMs: undefined,
      })
      await expectStillDead(scene, jobId)
      expect(await scene.marker(keyOf(runtime, key).hash)).toMatchObject({ state: 'in_doubt', jobId })
      const absence = { statement: 'not in the list of charges', settleAfterMs: minute }
      expect(await scene.resurrect(jobId, { mode: 'new-operation', absence })).toEqual({
        kind: 'resurrected',
        generation: 2,
      })
      const [audited] = await scene.inspector.audit({ limit: 1, beforeId: undefined })
      expect(JSON.parse(audited?.detail ?? '')).toMatchObject({ absence: absence.statement, inDoubt: [] })
      const again = await scene.fetchOne(keyed)
      scene.expect((await scene.start(again.lease, keyed)).kind).toBe('started')
    },

    'an effect in doubt is stated absent only when its call would be seen, and is closed with the act': async (
      scene,
    ) => {
      const { expect } = scene
      const { jobId, intentId } = await effectInDoubt(scene, key)
      const absence = { statement: 'not in the list of charges', settleAfterMs: minute }
      const act = (): Promise<ResurrectVerdict> => scene.resurrect(jobId, { mode: 'new-operation', absence })
      const early = await act()
      expect(early).toMatchObject({ kind: 'not-absent', effects: ['charge'] })
      expect(early.kind === 'not-absent' && (early.waitMs ?? 0)).toBeGreaterThan(0)
      expect(await states(scene, jobId)).toEqual(['open'])
      await scene.elapse(minute + second)
      expect(await scene.resurrect(jobId, { mode: 'new-operation' })).toMatchObject({ waitMs: undefined })
      expect(await act()).toEqual({ kind: 'resurrected', generation: 2 })
      expect(await states(scene, jobId)).toEqual(['not-executed'])
      const [audited] = await scene.inspector.audit({ limit: 1, beforeId: undefined })
      expect(JSON.parse(audited?.detail ?? '')).toMatchObject({ inDoubt: [{ name: 'charge', item: '' }] })
      // It was there after all: the evidence stands, for whoever looks.
      await closed(scene, intentId)
      expect(await states(scene, jobId)).toEqual(['done'])
    },

    'a new operation of a job in doubt needs no word where the record proves that nothing was executed': async (
      scene,
    ) => {
      const { expect } = scene
      const job = await scene.runningKeyed(key)
      await closed(scene, await opened(scene, job), { state: 'not-executed', result: null })
      await scene.mustSettle(job.lease, bury({ reason: 'ReviewRequested', hold: true }), 'dead')
      expect(await scene.resurrect(job.lease.jobId, { mode: 'new-operation' })).toMatchObject({ kind: 'resurrected' })
    },

    'a new operation never replaces the doubt of another job of the key': async (scene) => {
      const { expect, runtime } = scene
      const first = await deadKeyed(scene)
      const doubtful = await inDoubt(scene)
      const absence = { statement: 'nothing there', settleAfterMs: 0 }
      expect(await scene.resurrect(first, { mode: 'new-operation', absence })).toEqual({
        kind: 'marked',
        jobId: doubtful,
        state: 'in_doubt',
      })
      await expectStillDead(scene, first)
      expect(await scene.marker(keyOf(runtime, key).hash)).toMatchObject({ state: 'in_doubt', jobId: doubtful })
    },

    'a continue is refused when a marker could have come and gone': async (scene) => {
      const { expect } = scene
      const jobId = await deadKeyed(scene)
      await scene.elapse(2 * day)
      expect(await scene.resurrect(jobId, {}, day)).toEqual({ kind: 'too-old' })
      await expectStillDead(scene, jobId)
      expect(await scene.resurrect(jobId, {}, 3 * day)).toMatchObject({ kind: 'resurrected' })
    },

    'a new operation is never too old': async (scene) => {
      const jobId = await deadKeyed(scene)
      await scene.elapse(2 * day)
      const verdict = await scene.resurrect(jobId, { mode: 'new-operation' }, day)
      scene.expect(verdict).toEqual({ kind: 'resurrected', generation: 2 })
    },

    'an edited payload is kept, under the same key': async (scene) => {
      const { expect, runtime } = scene
      const jobId = await deadKeyed(scene)
      const payload = '{"amount":1,"note":"fixed"}'
      const same = { key: keyOf(runtime, key), fingerprint: fingerprint(runtime, { amount: 1, note: 'fixed' }) }
      expect(await scene.resurrect(jobId, { payload, key: same })).toMatchObject({ kind: 'resurrected' })
      const again = await scene.fetchOne(keyed)
      expect(again).toMatchObject({ payload, key: same.key, fingerprint: same.fingerprint, generation: 1 })
    },

    'H25 an edit that changes the key is a new operation, and says so': async (scene) => {
      const { expect, runtime } = scene
      const jobId = await deadKeyed(scene)
      const changed = {
        payload: '{"amount":2}',
        key: { key: keyOf(runtime, 'order-2'), fingerprint: fingerprint(runtime, { amount: 2 }) },
      }
      expect(await scene.resurrect(jobId, changed)).toEqual({ kind: 'key-changed' })
      await expectStillDead(scene, jobId)
      expect(await scene.resurrect(jobId, { ...changed, mode: 'new-operation' })).toMatchObject({ kind: 'resurrected' })
      const again = await scene.fetchOne(keyed)
      expect(again).toMatchObject({ ...changed, key: changed.key.key, fingerprint: changed.key.fingerprint })
    },

    'H25 the new key of an edit is asked for its holder like any other': async (scene) => {
      const { expect, runtime } = scene
      const jobId = await deadKeyed(scene)
      const holder = await scene.addKeyed('order-2')
      const edit = { key: keyOf(runtime, 'order-2'), fingerprint: fingerprint(runtime, { amount: 1 }) }
      const request = { mode: 'new-operation', payload: '{"amount":1}', key: edit } as const
      expect(await scene.resurrect(jobId, request)).toEqual({ kind: 'active', jobId: holder.id })
      await expectStillDead(scene, jobId)
    },

    'a dead conflict is marked by the job that was first': async (scene) => {
      const { expect, runtime } = scene
      const { lease } = await scene.runningKeyed(key)
      const other = runtime.newId()
      await scene.plantMarker(keyOf(runtime, key).hash, { jobId: other })
      await scene.mustSettle(lease, complete(), 'conflict')
      expect(await scene.resurrect(lease.jobId)).toEqual({ kind: 'marked', jobId: other, state: 'completed' })
    },

    'jobs without a key come back without asking anybody': async (scene) => {
      const { expect } = scene
      const { lease } = await scene.running()
      await scene.mustSettle(lease, bury(), 'dead')
      expect(await scene.resurrect(lease.jobId, { mode: 'new-operation' })).toMatchObject({ kind: 'resurrected' })
      expect((await scene.fetchOne(plain)).lease.jobId).toBe(lease.jobId)
    },
  },
}
