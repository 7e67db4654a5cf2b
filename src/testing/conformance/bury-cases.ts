/** What ends a job without success: bury and refuse, skip, cancel. */
import { deadReasons } from '../../core/job.ts'
import { parseHistory } from '../../core/failure.ts'
import { boom, bury, cancel, retry, skip } from './actions.ts'
import { fromTable, type CaseGroup } from './cases.ts'
import { keyedPolicy, keyOf, minute } from './new-job.ts'
import { keyed, operator, plain, type Scene } from './scene.ts'

const review = keyedPolicy({ whenInterrupted: 'review' })

async function expectInDoubt(scene: Scene, jobId: string, key: string): Promise<void> {
  const marker = await scene.marker(keyOf(scene.runtime, key).hash)
  scene.expect(marker).toMatchObject({ state: 'in_doubt', jobId })
  scene.expect(marker?.expiresAtMs, 'only a decision ends a doubt').toBeUndefined()
  scene.expect(await scene.record(jobId)).toMatchObject({ pillar: 'dlq', inDoubt: true })
}

const reasons = fromTable(
  deadReasons,
  (reason) => `a job can be dead for ${reason}, and is counted by it`,
  async (scene, reason) => {
    const job = await scene.runningKeyed('order-1')
    await scene.mustSettle(job.lease, bury({ reason }), 'dead')
    scene.expect(await scene.record(job.lease.jobId)).toMatchObject({ pillar: 'dlq', state: 'dead', reason })
    scene.expect(await scene.counter('jobs.dlq', reason)).toBe(1)
  },
)

export const buryCases: CaseGroup = {
  title: 'settle: bury, skip, cancel',
  cases: {
    'a dead job keeps everything a person needs': async (scene) => {
      const { expect } = scene
      const first = await scene.runningKeyed('order-1', keyed, { tags: ['eu'] })
      await scene.mustSettle(first.lease, retry({ failure: { name: 'Error', message: 'first' } }), 'retried')
      const job = await scene.fetchOne(keyed)
      await scene.mustStart(job.lease, keyed)
      await scene.elapse(minute)
      await scene.mustSettle(job.lease, bury(), 'dead')
      const record = await scene.record(job.lease.jobId)
      expect(record).toMatchObject({
        pillar: 'dlq',
        state: 'dead',
        reason: 'MaxRetriesExceeded',
        payload: job.payload,
        keyHash: job.key?.hash,
        fingerprint: job.fingerprint,
        failure: boom,
        attempt: 2,
        tags: ['eu'],
        token: job.lease.token,
        inDoubt: false,
      })
      expect(record.finishedAtMs).not.toBe(null)
      expect(parseHistory(record.history).map((entry) => entry.failure.message)).toEqual(['first', boom.message])
      expect(await scene.marker(keyOf(scene.runtime, 'order-1').hash)).toBeUndefined()
      expect(await scene.counter('idempotency.claims', 'released')).toBe(1)
    },

    ...reasons,

    'a job is buried before it ever started': async (scene) => {
      const job = await scene.fetched()
      await scene.mustSettle(job.lease, bury({ reason: 'Rejected' }), 'dead')
      scene.expect(await scene.record(job.lease.jobId)).toMatchObject({ reason: 'Rejected', attempt: 0 })
    },

    'an empty key is counted as one': async (scene) => {
      await scene.add({ type: keyed.type })
      const job = await scene.fetchOne(keyed)
      await scene.mustSettle(job.lease, bury({ reason: 'EmptyKey' }), 'dead')
      scene.expect(await scene.counter('idempotency.claims', 'empty_key')).toBe(1)
    },

    'H30 a held death leaves a marker in doubt that has no expiry': async (scene) => {
      const job = await scene.runningKeyed('order-1', review)
      await scene.mustSettle(job.lease, bury({ reason: 'Interrupted', hold: true }), 'dead')
      await expectInDoubt(scene, job.lease.jobId, 'order-1')
      scene.expect(await scene.counter('idempotency.claims', 'released')).toBe(0)
    },

    'a death without failure has none': async (scene) => {
      const job = await scene.running()
      await scene.mustSettle(job.lease, bury({ failure: null }), 'dead')
      scene.expect((await scene.record(job.lease.jobId)).failure).toBe(null)
    },

    'a burial repeated after a lost reply is recognised and counted once': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1', review)
      await scene.mustSettle(job.lease, bury({ hold: true }), 'dead')
      const before = await scene.record(job.lease.jobId)
      expect(await scene.settle(job.lease, bury({ hold: true }))).toEqual({
        kind: 'settled',
        outcome: 'dead',
        repeated: true,
      })
      expect(await scene.record(job.lease.jobId)).toEqual(before)
      expect(await scene.counter('jobs.dlq')).toBe(1)
    },

    'H8 a stale owner cannot bury, skip or cancel, and leaves no marker': async (scene) => {
      const { expect } = scene
      const stale = await scene.runningKeyed('order-1')
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      const current = await scene.fetchOne(keyed, { workerId: 'worker-2' })
      await scene.mustStart(current.lease, keyed)
      for (const action of [bury({ hold: true }), skip(scene.runtime.newId()), cancel(true)]) {
        expect(await scene.settle(stale.lease, action)).toEqual({ kind: 'lost' })
      }
      expect(await scene.place(stale.lease.jobId)).toBe('processing')
      expect(await scene.marker(keyOf(scene.runtime, 'order-1').hash)).toBeUndefined()
      await scene.mustSettle(current.lease, bury(), 'dead')
      expect(await scene.settle(stale.lease, bury()), 'the death of a later attempt').toEqual({ kind: 'lost' })
    },

    'a held death does not overwrite the live marker of another job': async (scene) => {
      const { runtime, expect } = scene
      const job = await scene.runningKeyed('order-1', review)
      const hash = keyOf(runtime, 'order-1').hash
      const other = runtime.newId()
      await scene.plantMarker(hash, { jobId: other, result: '{"charge":"ch_0"}' })
      await scene.settle(job.lease, bury({ hold: true }))
      expect(await scene.place(job.lease.jobId)).toBe('dlq')
      expect(await scene.marker(hash)).toMatchObject({ state: 'completed', jobId: other })
    },

    'H10 a skipped duplicate is archived as such, points to its holder, and is no success': async (scene) => {
      const { runtime, expect } = scene
      await scene.addKeyed('order-1')
      const job = await scene.fetchOne(keyed)
      const holderId = runtime.newId()
      await scene.mustSettle(job.lease, skip(holderId), 'skipped')
      expect(await scene.record(job.lease.jobId)).toMatchObject({
        pillar: 'archive',
        state: 'skipped',
        duplicateOf: holderId,
        result: '{"charge":"ch_0"}',
        attempt: 0,
      })
      expect(await scene.counter('jobs.skipped')).toBe(1)
      expect(await scene.counter('jobs.completed')).toBe(0)
      expect(await scene.counter('idempotency.claims', 'completed_duplicate')).toBe(1)
      expect(await scene.marker(keyOf(runtime, 'order-1').hash)).toBeUndefined()
      expect(await scene.settle(job.lease, skip(holderId))).toMatchObject({ outcome: 'skipped', repeated: true })
      expect(await scene.counter('jobs.skipped')).toBe(1)
    },

    'a duplicate of a job that runs or is in review is counted as in progress': async (scene) => {
      for (const [index, holder] of (['in-progress', 'in-review'] as const).entries()) {
        await scene.addKeyed(`order-${index}`)
        const job = await scene.fetchOne(keyed)
        await scene.mustSettle(job.lease, skip(scene.runtime.newId(), { holder, result: null }), 'skipped')
      }
      scene.expect(await scene.counter('idempotency.claims', 'in_progress_duplicate')).toBe(2)
    },

    'a cancelled job is archived without a marker': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      await scene.mustSettle(job.lease, cancel(), 'cancelled')
      expect(await scene.record(job.lease.jobId)).toMatchObject({ pillar: 'archive', state: 'cancelled', result: null })
      expect(await scene.marker(keyOf(scene.runtime, 'order-1').hash)).toBeUndefined()
      expect(await scene.counter('jobs.cancelled')).toBe(1)
      expect(await scene.settle(job.lease, cancel())).toMatchObject({ outcome: 'cancelled', repeated: true })
      expect(await scene.counter('jobs.cancelled')).toBe(1)
    },

    'a cancelled job that had started under review is buried in doubt': async (scene) => {
      const job = await scene.runningKeyed('order-1', review)
      await scene.inspector.cancel(job.lease.jobId, operator)
      await scene.mustSettle(job.lease, cancel(true), 'dead')
      await expectInDoubt(scene, job.lease.jobId, 'order-1')
      scene.expect(await scene.counter('jobs.cancelled')).toBe(0)
      scene.expect(await scene.counter('jobs.dlq')).toBe(1)
    },

    'a job that is dead can be told by its key from one that lives': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      await scene.mustSettle(job.lease, bury(), 'dead')
      const next = await scene.addKeyed('order-1')
      scene.expect(await scene.place(job.lease.jobId)).toBe('dlq')
      scene.expect(await scene.record(next.id)).toMatchObject({ generation: 1, state: 'pending' })
      scene.expect(await scene.fetch([plain, keyed])).toHaveLength(1)
    },
  },
}
