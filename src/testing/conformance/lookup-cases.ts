/** What people look for beside lists of everything: how many, what waits for them, duplicates, and who acted on a job. */
import type { JobFilter } from '../../core/inspector.ts'
import type { Pillar } from '../../core/job.ts'
import { bury, skip } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { minute, newJob } from './new-job.ts'
import { operator, plain, type Scene } from './scene.ts'

function counted(scene: Scene, pillar: Pillar, filter: JobFilter, limit = 100) {
  return scene.inspector.count({ pillar, filter, limit })
}

async function idsOf(scene: Scene, pillar: Pillar, filter: JobFilter): Promise<readonly string[]> {
  const { jobs } = await scene.inspector.list({ pillar, filter, limit: 100, cursor: undefined })
  return jobs.map(({ id }) => id)
}

/** Dead: two in doubt, one conflict, one that waits for nobody. */
async function dead(scene: Scene): Promise<{ readonly waiting: readonly string[]; readonly other: string }> {
  const ids: string[] = []
  for (const [n, action] of [
    bury({ reason: 'InDoubt', hold: true }),
    bury({ reason: 'CompleteConflict' }),
    bury({ reason: 'Interrupted', hold: true }),
    bury(),
  ].entries()) {
    const { lease } = await scene.runningKeyed(`order-${n}`)
    await scene.mustSettle(lease, action, 'dead')
    ids.push(lease.jobId)
    await scene.elapse(minute)
  }
  return { waiting: ids.slice(0, 3).reverse(), other: ids[3] ?? '' }
}

export const lookupCases: CaseGroup = {
  title: 'lookups',
  cases: {
    'a count is exact up to its limit, and says where it is not': async (scene) => {
      const { expect, runtime } = scene
      await scene.insert(...Array.from({ length: 7 }, (_, n) => newJob(runtime, { queue: n < 5 ? 'a' : 'b' })))
      expect(await counted(scene, 'hot', {})).toEqual({ count: 7, isExact: true })
      expect(await counted(scene, 'hot', { queue: 'a' })).toEqual({ count: 5, isExact: true })
      expect(await counted(scene, 'hot', { queue: 'a' }, 5)).toEqual({ count: 5, isExact: true })
      expect(await counted(scene, 'hot', { queue: 'a' }, 4)).toEqual({ count: 4, isExact: false })
      expect(await counted(scene, 'hot', { queue: 'nobody' })).toEqual({ count: 0, isExact: true })
      expect(await counted(scene, 'archive', {})).toEqual({ count: 0, isExact: true })
    },

    'what waits for a person is listed and counted, and nothing else': async (scene) => {
      const { expect } = scene
      const { waiting, other } = await dead(scene)
      expect(await idsOf(scene, 'dlq', { inReview: true })).toEqual(waiting)
      expect(await counted(scene, 'dlq', { inReview: true })).toEqual({ count: 3, isExact: true })
      expect(await counted(scene, 'dlq', { inReview: true, reason: 'CompleteConflict' })).toMatchObject({ count: 1 })
      expect(await counted(scene, 'dlq', {})).toEqual({ count: 4, isExact: true })
      expect(waiting).not.toContain(other)
      expect(await counted(scene, 'hot', { inReview: true })).toMatchObject({ count: 0 })
    },

    'what is in doubt of a list of dead jobs is one question': async (scene) => {
      const { expect } = scene
      const { waiting, other } = await dead(scene)
      // Buried in doubt as a whole: no call of theirs was recorded.
      expect(await scene.inspector.doubts([...waiting, other, 'nobody'])).toEqual([])
      expect(await scene.inspector.doubts([])).toEqual([])
    },

    'the dead of each queue are counted, in doubt or not': async (scene) => {
      const { expect } = scene
      await dead(scene)
      const { lease } = await scene.running(plain, { queue: 'other' }, { queue: 'other' })
      await scene.mustSettle(lease, bury(), 'dead')
      const queues = await scene.inspector.queues()
      expect(queues.map(({ name, deadCount }) => [name, deadCount])).toEqual([
        ['default', 4],
        ['other', 1],
      ])
    },

    'the duplicates of a job are found by it, in their pillars': async (scene) => {
      const { expect, runtime } = scene
      const holder = runtime.newId()
      const skipped: string[] = []
      for (const of of [holder, holder, runtime.newId()]) {
        const { lease } = await scene.running()
        await scene.mustSettle(lease, skip(of), 'skipped')
        skipped.push(lease.jobId)
        await scene.elapse(minute)
      }
      expect(await idsOf(scene, 'archive', { duplicateOf: holder })).toEqual(skipped.slice(0, 2).reverse())
      expect(await counted(scene, 'archive', { duplicateOf: holder })).toEqual({ count: 2, isExact: true })
      for (const pillar of ['hot', 'dlq'] as const) {
        expect(await idsOf(scene, pillar, { duplicateOf: holder })).toEqual([])
      }
      expect(await idsOf(scene, 'archive', { duplicateOf: `'; --` })).toEqual([])
    },

    'a page of duplicates goes on among them': async (scene) => {
      const { expect, runtime } = scene
      const holder = runtime.newId()
      for (let n = 0; n < 5; n += 1) {
        const { lease } = await scene.running()
        await scene.mustSettle(lease, skip(n % 2 === 0 ? holder : runtime.newId()), 'skipped')
      }
      const seen: string[] = []
      let cursor: string | undefined
      do {
        const page = await scene.inspector.list({
          pillar: 'archive',
          filter: { duplicateOf: holder },
          limit: 1,
          cursor,
        })
        seen.push(...page.jobs.map(({ id }) => id))
        cursor = page.nextCursor
      } while (cursor !== undefined)
      expect(new Set(seen).size).toBe(3)
    },

    'the audit log of one subject has its acts, newest first, and no others': async (scene) => {
      const { expect } = scene
      const job = await scene.add({ due: { kind: 'in', delayMs: minute } })
      const other = await scene.add({ due: { kind: 'in', delayMs: minute } })
      await scene.inspector.retryNow(job.id, operator)
      await scene.inspector.cancel(other.id, operator)
      await scene.inspector.cancel(job.id, operator)
      const rows = await scene.inspector.audit({ limit: 10, beforeId: undefined, subject: job.id })
      expect(rows.map(({ act }) => act)).toEqual(['cancel', 'retry-now'])
      const [newest] = rows
      const before = await scene.inspector.audit({ limit: 10, beforeId: newest?.id, subject: job.id })
      expect(before.map(({ act }) => act)).toEqual(['retry-now'])
    },

    'a purge of one job stands under its id': async (scene) => {
      const { expect } = scene
      const { lease } = await scene.running()
      await scene.mustSettle(lease, bury(), 'dead')
      expect(await scene.inspector.purge({ jobIds: [lease.jobId], limit: 1 }, operator)).toBe(1)
      const rows = await scene.inspector.audit({ limit: 10, beforeId: undefined, subject: lease.jobId })
      expect(rows.map(({ act }) => act)).toEqual(['purge'])
    },
  },
}
