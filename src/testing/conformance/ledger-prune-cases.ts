/** How long the record of effects is kept: while anything has its key, and its time after the last intent. */
import { bury, complete } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { ask, closed, effectInDoubt, mustResolve, opened, refOf, states } from './ledger-steps.ts'
import { day, hour, minute } from './new-job.ts'
import { type Scene } from './scene.ts'

async function prunedCount(scene: Scene, retentionMs = hour): Promise<number> {
  const limits = { limit: 100, archiveRetentionMs: 365 * day, dlqRetentionMs: retentionMs }
  return (await scene.driver.prune(limits)).effectCount
}

export const ledgerPruneCases: CaseGroup = {
  title: 'ledger: retention',
  cases: {
    'rows go when nothing has their key and their time is over': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      await closed(scene, await opened(scene, job))
      await scene.elapse(2 * day)
      expect(await prunedCount(scene), 'its job is hot').toBe(0)
      await scene.mustSettle(job.lease, complete({ guard: true, markerLifeMs: hour }), 'completed')
      expect(await prunedCount(scene), 'its marker stands').toBe(0)
      await scene.elapse(2 * hour)
      expect(await prunedCount(scene)).toBe(1)
      expect(await states(scene, job.lease.jobId)).toEqual([])
      expect(await scene.place(job.lease.jobId), 'the archive keeps its own time').toBe('archive')
    },

    'rows stay their time after the last intent of their key': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      await closed(scene, await opened(scene, job, { keepMs: hour }))
      await scene.elapse(2 * hour)
      await closed(scene, await opened(scene, job, { ref: refOf(job, 'mail'), keepMs: 10 * hour }))
      await scene.mustSettle(job.lease, complete({ guard: true, markerLifeMs: minute }), 'completed')
      await scene.elapse(9 * hour)
      expect(await prunedCount(scene), 'the second is young').toBe(0)
      await scene.elapse(2 * hour)
      expect(await prunedCount(scene)).toBe(2)
    },

    'rows stay while a dead job has their key': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      await closed(scene, await opened(scene, job, { keepMs: hour }))
      await scene.mustSettle(job.lease, bury(), 'dead')
      await scene.elapse(2 * hour)
      expect(await prunedCount(scene, day)).toBe(0)
      await scene.elapse(day)
      expect(await prunedCount(scene, day)).toBe(1)
      expect(await scene.place(job.lease.jobId)).toBe('nowhere')
    },

    'what is in doubt never goes, nor does what stands beside it': async (scene) => {
      const { expect } = scene
      const { job, jobId } = await effectInDoubt(scene)
      expect(job.key).toBeDefined()
      await scene.elapse(365 * day)
      expect(await prunedCount(scene)).toBe(0)
      await mustResolve(scene, jobId, { decision: 'abandon', markerLifeMs: hour })
      await scene.elapse(2 * hour)
      expect(await prunedCount(scene)).toBe(1)
    },

    'memos of a job without a key stay while it is hot or dead': async (scene) => {
      const { expect } = scene
      const job = await scene.running()
      const ref = refOf(job, 'rate', '', 'memo')
      const id = scene.runtime.newId()
      await ask(scene, {
        kind: 'remember',
        lease: job.lease,
        ref,
        id,
        result: '1',
        workerId: 'w',
        attempt: 1,
        keepMs: hour,
      })
      await scene.elapse(2 * hour)
      expect(await prunedCount(scene, day), 'hot').toBe(0)
      await scene.mustSettle(job.lease, bury(), 'dead')
      await scene.elapse(2 * hour)
      expect(await prunedCount(scene, day), 'dead').toBe(0)
      await scene.elapse(day)
      expect(await prunedCount(scene, day)).toBe(1)
    },

    'a pass of retention is bounded': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      for (const item of ['a', 'b', 'c']) {
        await closed(scene, await opened(scene, job, { ref: refOf(job, 'mail', item), keepMs: hour }))
      }
      await scene.mustSettle(job.lease, complete({ guard: true, markerLifeMs: minute }), 'completed')
      await scene.elapse(day)
      const limits = { limit: 2, archiveRetentionMs: 365 * day, dlqRetentionMs: day }
      expect((await scene.driver.prune(limits)).effectCount).toBe(2)
      expect((await scene.driver.prune(limits)).effectCount).toBe(1)
    },
  },
}
