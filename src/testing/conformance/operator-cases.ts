/** What operators do: cancel, retry now, purge, change queues. Each act leaves one row in the audit log, a refusal none. */
import type { AuditRow } from '../../core/inspector.ts'
import { bury, complete, release, retry } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { hour, keyedPolicy, keyOf, minute, newJob } from './new-job.ts'
import { keyed, operator, plain, type Scene } from './scene.ts'

function auditOf(scene: Scene): Promise<readonly AuditRow[]> {
  return scene.inspector.audit({ limit: 100, beforeId: undefined })
}

async function deadJob(scene: Scene, of = plain): Promise<string> {
  const { lease } = await scene.running(of)
  await scene.mustSettle(lease, bury(), 'dead')
  return lease.jobId
}

/** One act, which must leave one audit row that says who, why and on what. */
async function audited(scene: Scene, subject: string, act: () => Promise<unknown>): Promise<string> {
  const before = await auditOf(scene)
  await act()
  const after = await auditOf(scene)
  scene.expect(after.length - before.length).toBe(1)
  const row = after[0]
  scene.expect(row).toMatchObject({ actor: operator.actor, note: operator.note })
  scene.expect(`${row?.subject} ${row?.detail}`).toContain(subject)
  scene.expect(typeof JSON.parse(row?.detail ?? '')).toBe('object')
  return row?.act ?? ''
}

export const operatorCases: CaseGroup = {
  title: 'operators',
  cases: {
    'I23 a waiting job is cancelled at once, and is never fetched again': async (scene) => {
      const { expect } = scene
      const scheduled = await scene.addKeyed('order-1', { due: { kind: 'in', delayMs: minute } })
      const pending = await scene.add()
      for (const { id } of [scheduled, pending]) {
        expect(await scene.inspector.cancel(id, operator)).toEqual({ kind: 'cancelled' })
        expect(await scene.record(id)).toMatchObject({ pillar: 'archive', state: 'cancelled', attempt: 0 })
      }
      await scene.elapse(hour)
      expect((await scene.driver.promote({ limit: 10 })).promotedCount).toBe(0)
      expect(await scene.fetch([plain, keyed])).toHaveLength(0)
      expect(await scene.counter('jobs.cancelled')).toBe(2)
      expect(await scene.marker(keyOf(scene.runtime, 'order-1').hash)).toBeUndefined()
    },

    'a cancel of an owned job asks its owner, once or many times': async (scene) => {
      const { expect } = scene
      const fetched = await scene.fetched()
      const running = await scene.running()
      for (const { lease } of [fetched, running]) {
        expect(await scene.inspector.cancel(lease.jobId, operator)).toEqual({ kind: 'requested' })
        const { cancelRequestedAtMs, state, token } = await scene.record(lease.jobId)
        expect(cancelRequestedAtMs).not.toBe(null)
        expect(token, 'the owner keeps its lease').toBe(lease.token)
        await scene.elapse(minute)
        expect(await scene.inspector.cancel(lease.jobId, operator)).toEqual({ kind: 'requested' })
        expect(await scene.record(lease.jobId)).toMatchObject({ state, cancelRequestedAtMs })
      }
      expect(await scene.counter('jobs.cancelled')).toBe(0)
    },

    'a cancel of what is over says how it ended, and changes nothing': async (scene) => {
      const { expect } = scene
      const done = await scene.running()
      await scene.mustSettle(done.lease, complete(), 'completed')
      const cancelled = await scene.add()
      await scene.inspector.cancel(cancelled.id, operator)
      const dead = await deadJob(scene)
      const before = await auditOf(scene)
      for (const [id, state] of [
        [done.lease.jobId, 'completed'],
        [cancelled.id, 'cancelled'],
        [dead, 'dead'],
      ] as const) {
        const record = await scene.record(id)
        expect(await scene.inspector.cancel(id, operator)).toEqual({ kind: 'finished', state })
        expect(await scene.record(id)).toEqual(record)
      }
      expect(await scene.inspector.cancel(scene.runtime.newId(), operator)).toEqual({ kind: 'not-found' })
      expect(await auditOf(scene)).toEqual(before)
    },

    'an owner does not take the cancel of an operator for its own settle': async (scene) => {
      const job = await scene.running()
      await scene.mustSettle(job.lease, retry(), 'retried')
      await scene.inspector.cancel(job.lease.jobId, operator)
      scene.expect(await scene.settle(job.lease, retry())).toEqual({ kind: 'lost' })
      scene.expect(await scene.settle(job.lease, { kind: 'cancel', hold: false })).toEqual({ kind: 'lost' })
    },

    'a cancelled waiting job frees its key': async (scene) => {
      const { id } = await scene.addKeyed('order-1', { due: { kind: 'in', delayMs: hour } })
      await scene.inspector.cancel(id, operator)
      await scene.addKeyed('order-1')
      scene.expect(await scene.counter('idempotency.claims', 'released')).toBe(1)
    },

    'a scheduled job is due now when an operator says so': async (scene) => {
      const { expect } = scene
      const { id } = await scene.add({ due: { kind: 'in', delayMs: hour } })
      expect(await scene.inspector.retryNow(id, operator)).toBe(true)
      expect(await scene.place(id)).toBe('pending')
      const before = await auditOf(scene)
      expect(await scene.inspector.retryNow(id, operator)).toBe(false)
      expect(await scene.inspector.retryNow(scene.runtime.newId(), operator)).toBe(false)
      const job = await scene.fetchOne(plain)
      expect(job.lease.jobId).toBe(id)
      expect(await scene.inspector.retryNow(id, operator)).toBe(false)
      expect(await auditOf(scene)).toEqual(before)
    },

    'purge deletes dead jobs for good, and says how many': async (scene) => {
      const { expect } = scene
      const [a, b] = [await deadJob(scene), await deadJob(scene)]
      const done = await scene.running()
      await scene.mustSettle(done.lease, complete(), 'completed')
      const jobIds = [a, done.lease.jobId, scene.runtime.newId()]
      expect(await scene.inspector.purge({ jobIds, limit: 10 }, operator)).toBe(1)
      expect([await scene.place(a), await scene.place(b)]).toEqual(['nowhere', 'dlq'])
      expect(await scene.place(done.lease.jobId)).toBe('archive')
      expect(await scene.counter('jobs.purged')).toBe(1)
    },

    'purge takes a filter and stops at its limit': async (scene) => {
      const { expect, runtime } = scene
      await scene.insert(...Array.from({ length: 6 }, (_, n) => newJob(runtime, { tags: [n < 4 ? 'old' : 'new'] })))
      const jobs = await scene.fetch([plain])
      await scene.driver.settle(jobs.map(({ lease }) => ({ lease, action: bury() })))
      const old = { filter: { tag: 'old' } }
      expect(await scene.inspector.purge({ ...old, limit: 3 }, operator)).toBe(3)
      expect(await scene.inspector.purge({ ...old, limit: 3 }, operator)).toBe(1)
      expect(await scene.inspector.purge({ ...old, limit: 3 }, operator)).toBe(0)
      const left = await scene.all('dlq')
      expect(left.map(({ tags }) => tags)).toEqual([['new'], ['new']])
      expect(await scene.counter('jobs.purged')).toBe(4)
    },

    'H30 purge never takes a job in doubt, by id or by filter': async (scene) => {
      const { expect } = scene
      const { lease } = await scene.runningKeyed('order-1', keyedPolicy({ whenInterrupted: 'review' }))
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      expect(await scene.inspector.purge({ jobIds: [lease.jobId], limit: 10 }, operator)).toBe(0)
      expect(await scene.inspector.purge({ filter: { type: keyed.type }, limit: 10 }, operator)).toBe(0)
      expect(await scene.record(lease.jobId)).toMatchObject({ pillar: 'dlq', inDoubt: true })
    },

    'every act leaves one audit row, and the acts can be told apart': async (scene) => {
      const { expect, inspector } = scene
      const waiting = await scene.add({ due: { kind: 'in', delayMs: hour } })
      const delayed = await scene.add({ due: { kind: 'in', delayMs: hour } })
      const [dead, gone] = [await deadJob(scene), await deadJob(scene)]
      const pause = { name: 'default', paused: true }
      const acts = [
        await audited(scene, 'default', () => inspector.setQueue(pause, operator)),
        await audited(scene, waiting.id, () => inspector.cancel(waiting.id, operator)),
        await audited(scene, delayed.id, () => inspector.retryNow(delayed.id, operator)),
        await audited(scene, dead, () => scene.resurrect(dead)),
        await audited(scene, gone, () => inspector.purge({ jobIds: [gone], limit: 1 }, operator)),
      ]
      expect(new Set(acts).size).toBe(5)
      expect(acts).not.toContain('')
    },

    'asking an owner to cancel is audited, too': async (scene) => {
      const { lease } = await scene.running()
      await audited(scene, lease.jobId, () => scene.inspector.cancel(lease.jobId, operator))
    },

    'a refused resurrection leaves no audit row': async (scene) => {
      const dead = await deadJob(scene)
      const before = await auditOf(scene)
      scene.expect(await scene.resurrect(dead, { revision: 999 })).toMatchObject({ kind: 'changed' })
      scene.expect(await auditOf(scene)).toEqual(before)
    },

    'the audit log is read from its end, page by page': async (scene) => {
      const { expect, inspector } = scene
      const names = ['a', 'b', 'c', 'd', 'e']
      for (const name of names) {
        await inspector.setQueue({ name, paused: true }, { actor: `who-${name}`, note: `why "${name}" 'quoted'` })
        await scene.elapse(minute)
      }
      const first = await inspector.audit({ limit: 2, beforeId: undefined })
      expect(first.map(({ actor }) => actor)).toEqual(['who-e', 'who-d'])
      const next = await inspector.audit({ limit: 10, beforeId: first[1]?.id })
      expect(next.map(({ actor }) => actor)).toEqual(['who-c', 'who-b', 'who-a'])
      expect(next[0]?.note).toBe(`why "c" 'quoted'`)
      expect((first[0]?.atMs ?? 0) - (next[0]?.atMs ?? 0)).toBeGreaterThanOrEqual(2 * minute)
    },

    'an operator never takes a lease away: settle goes on after any read': async (scene) => {
      const job = await scene.running()
      await scene.inspector.get(job.lease.jobId)
      await scene.all('hot')
      await scene.inspector.queues()
      await scene.mustSettle(job.lease, release, 'released')
      scene.expect(await scene.place(job.lease.jobId)).toBe('pending')
    },
  },
}
