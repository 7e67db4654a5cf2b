/** What operators see: one job, lists with filters, pages that hold still while jobs come and go. */
import type { JobFilter } from '../../core/inspector.ts'
import type { JobRecord, NewJob } from '../../core/job.ts'
import { bury, complete, skip } from './actions.ts'
import { fromTable, type CaseGroup } from './cases.ts'
import { day, hour, keyedJob, keyOf, minute, newJob, second } from './new-job.ts'
import { keyed, plain, present, refusal, type Scene } from './scene.ts'

async function idsOf(scene: Scene, filter: JobFilter, pillar: JobRecord['pillar'] = 'hot'): Promise<string[]> {
  const { jobs } = await scene.inspector.list({ pillar, filter, limit: 500, cursor: undefined })
  return jobs.map((job) => job.id)
}

/** Seven hot jobs that differ in everything a filter can ask for. */
async function mixed(scene: Scene): Promise<readonly NewJob[]> {
  const { runtime } = scene
  const jobs = [
    newJob(runtime, { tags: ['eu', 'vip'] }),
    newJob(runtime, { type: 'report.build.v1', tags: ['eu%'] }),
    newJob(runtime, { queue: 'other', tags: ['EU'] }),
    keyedJob(runtime, 'order_1'),
    keyedJob(runtime, 'orderX1'),
    keyedJob(runtime, 'order%1', { due: { kind: 'in', delayMs: day } }),
    newJob(runtime, { due: { kind: 'in', delayMs: day } }),
  ]
  await scene.insert(...jobs)
  return jobs
}

interface FilterRow {
  readonly by: string
  readonly filter: (scene: Scene) => JobFilter
  /** Indexes of `mixed`. */
  readonly finds: readonly number[]
}

const filters: readonly FilterRow[] = [
  { by: 'nothing', filter: () => ({}), finds: [0, 1, 2, 3, 4, 5, 6] },
  { by: 'type', filter: () => ({ type: 'report.build.v1' }), finds: [1] },
  { by: 'queue', filter: () => ({ queue: 'other' }), finds: [2] },
  { by: 'tag', filter: () => ({ tag: 'eu' }), finds: [0] },
  { by: 'a tag that looks like a pattern', filter: () => ({ tag: 'eu%' }), finds: [1] },
  { by: 'state', filter: () => ({ state: 'scheduled' }), finds: [5, 6] },
  { by: 'key hash', filter: ({ runtime }) => ({ keyHash: keyOf(runtime, 'orderX1').hash }), finds: [4] },
  { by: 'the beginning of the key', filter: () => ({ keyPrefix: 'order' }), finds: [3, 4, 5] },
  { by: 'a beginning with an underscore, literally', filter: () => ({ keyPrefix: 'order_' }), finds: [3] },
  { by: 'a beginning with a percent sign, literally', filter: () => ({ keyPrefix: 'order%' }), finds: [5] },
  { by: 'several at once', filter: () => ({ keyPrefix: 'order', state: 'scheduled' }), finds: [5] },
  { by: 'what nothing matches', filter: () => ({ type: 'report.build.v1', queue: 'other' }), finds: [] },
]

const filtered = fromTable(
  filters,
  ({ by }) => `a list can be narrowed by ${by}`,
  async (scene, { filter, finds }) => {
    const jobs = await mixed(scene)
    const found = await idsOf(scene, filter(scene))
    scene.expect([...found].sort()).toEqual(finds.map((n) => present(jobs[n], 'a job').id).sort())
  },
)

const forged = [
  '',
  'x',
  '0',
  'bnVsbA',
  'e30',
  "' OR 1=1 --",
  '[]',
  '{"id":"x"}',
  'ZZZZ////====',
  '\u0000',
  '2026-01-01|a',
]

const forgeries = fromTable(
  forged,
  (cursor) => `the forged cursor ${JSON.stringify(cursor)} is refused`,
  async (scene, cursor) => {
    await scene.add()
    const call = scene.inspector.list({ pillar: 'hot', filter: {}, limit: 10, cursor })
    scene.expect(await refusal(call)).toBe('CHOKAQ_CURSOR_INVALID')
  },
)

export const inspectCases: CaseGroup = {
  title: 'inspect',
  cases: {
    'a job that nobody knows is undefined': async (scene) => {
      scene.expect(await scene.find(scene.runtime.newId())).toBeUndefined()
      scene.expect(await scene.find('')).toBeUndefined()
    },

    'the newest job comes first, in every pillar': async (scene) => {
      const { expect } = scene
      const ids: string[] = []
      for (let n = 0; n < 4; n += 1) {
        ids.push((await scene.add()).id)
        await scene.elapse(minute)
      }
      const newestFirst = [...ids].reverse()
      expect(await idsOf(scene, {})).toEqual(newestFirst)
      const jobs = await scene.fetch([plain])
      await scene.driver.start(jobs.map(({ lease }) => ({ lease, policy: plain })))
      const half = jobs.map(({ lease }, n) => ({ lease, action: n % 2 === 0 ? complete() : bury() }))
      await scene.driver.settle(half)
      expect(await idsOf(scene, {}, 'archive')).toEqual(newestFirst.filter((id) => ids.indexOf(id) % 2 === 0))
      expect(await idsOf(scene, {}, 'dlq')).toEqual(newestFirst.filter((id) => ids.indexOf(id) % 2 === 1))
    },

    ...filtered,

    'a list can be narrowed by time of creation: from is included, before is not': async (scene) => {
      const { expect } = scene
      const jobs: JobRecord[] = []
      for (let n = 0; n < 3; n += 1) {
        jobs.push(await scene.record((await scene.add()).id))
        await scene.elapse(hour)
      }
      const [a, b, c] = jobs as [JobRecord, JobRecord, JobRecord]
      expect(await idsOf(scene, { fromMs: b.createdAtMs })).toEqual([c.id, b.id])
      expect(await idsOf(scene, { beforeMs: b.createdAtMs })).toEqual([a.id])
      expect(await idsOf(scene, { fromMs: a.createdAtMs, beforeMs: c.createdAtMs })).toEqual([b.id, a.id])
    },

    'the archive is narrowed by outcome, the DLQ by reason': async (scene) => {
      const { expect } = scene
      const jobs = await Promise.all(['a', 'b', 'c', 'd'].map((key) => scene.addKeyed(key)))
      const fetched = await scene.fetch([keyed])
      await scene.driver.start(fetched.map(({ lease }) => ({ lease, policy: keyed })))
      const actions = [complete(), skip(scene.runtime.newId()), bury({ reason: 'Timeout' }), bury()]
      const leaseOf = (n: number) =>
        present(
          fetched.find(({ lease }) => lease.jobId === jobs[n]?.id),
          'a job',
        ).lease
      await scene.driver.settle(actions.map((action, n) => ({ lease: leaseOf(n), action })))
      expect(await idsOf(scene, { state: 'completed' }, 'archive')).toEqual([jobs[0]?.id])
      expect(await idsOf(scene, { state: 'skipped' }, 'archive')).toEqual([jobs[1]?.id])
      expect(await idsOf(scene, { reason: 'Timeout' }, 'dlq')).toEqual([jobs[2]?.id])
      expect(await idsOf(scene, { reason: 'Rejected' }, 'dlq')).toEqual([])
    },

    'pages are full, and the last one says that it is the last': async (scene) => {
      const { expect, runtime } = scene
      await scene.insert(...Array.from({ length: 6 }, () => newJob(runtime)))
      const page = (cursor: string | undefined) => scene.inspector.list({ pillar: 'hot', filter: {}, limit: 3, cursor })
      const first = await page(undefined)
      expect(first.jobs).toHaveLength(3)
      const next = await page(present(first.nextCursor, 'a cursor'))
      expect(next.jobs).toHaveLength(3)
      if (next.nextCursor !== undefined) expect((await page(next.nextCursor)).jobs).toHaveLength(0)
      expect(await idsOf(scene, { type: 'none.v1' })).toEqual([])
    },

    'I27 each untouched job is listed exactly once while others come and go': async (scene) => {
      const { expect, runtime } = scene
      // Many of one millisecond, so that the order needs its tie-break.
      const kept = Array.from({ length: 40 }, () => newJob(runtime, { queue: 'kept' }))
      const leaving = Array.from({ length: 20 }, () => newJob(runtime, { queue: 'leaving' }))
      await scene.insert(...runtime.chance.shuffle([...kept, ...leaving]))
      await scene.elapse(minute)
      const late = Array.from({ length: 10 }, () => newJob(runtime, { queue: 'kept' }))
      await scene.insert(...late)

      const seen: string[] = []
      let cursor: string | undefined
      do {
        const page = await scene.inspector.list({ pillar: 'hot', filter: {}, limit: 7, cursor })
        seen.push(...page.jobs.map((job) => job.id))
        cursor = page.nextCursor
        await scene.elapse(1000)
        await scene.insert(newJob(runtime, { queue: 'new' }), newJob(runtime, { queue: 'new' }))
        for (const { lease } of await scene.fetch([plain], { queue: 'leaving', limit: 2 })) {
          await scene.settle(lease, { kind: 'cancel', hold: false })
        }
      } while (cursor !== undefined)
      expect(new Set(seen).size, 'no job is listed twice').toBe(seen.length)
      const untouched = [...kept, ...late].map(({ id }) => id)
      expect(untouched.filter((id) => !seen.includes(id))).toEqual([])
    },

    'a page of a filtered list goes on within its filter': async (scene) => {
      const { expect, runtime } = scene
      const jobs = Array.from({ length: 12 }, (_, n) => newJob(runtime, { queue: n % 3 === 0 ? 'rare' : 'often' }))
      await scene.insert(...jobs)
      const seen: string[] = []
      let cursor: string | undefined
      do {
        const page = await scene.inspector.list({ pillar: 'hot', filter: { queue: 'rare' }, limit: 2, cursor })
        seen.push(...page.jobs.map((job) => job.queue))
        cursor = page.nextCursor
      } while (cursor !== undefined)
      expect(seen).toEqual(['rare', 'rare', 'rare', 'rare'])
    },

    ...forgeries,

    'a cursor that was cut or changed is refused': async (scene) => {
      const { expect, runtime } = scene
      await scene.insert(newJob(runtime), newJob(runtime), newJob(runtime))
      const list = (cursor: string | undefined) => scene.inspector.list({ pillar: 'hot', filter: {}, limit: 1, cursor })
      const cursor = present((await list(undefined)).nextCursor, 'a cursor')
      expect((await list(cursor)).jobs).toHaveLength(1)
      for (const wrong of [cursor.slice(0, -5), cursor.slice(5), `${cursor}!`, `!${cursor}`]) {
        expect(await refusal(list(wrong)), wrong).toBe('CHOKAQ_CURSOR_INVALID')
      }
    },

    'the migrations it has are those it knows': async ({ inspector, expect }) => {
      const { applied, known } = await inspector.schema()
      expect(applied).toEqual(known)
      expect(known.map(({ version }) => version)).toEqual(known.map((_, index) => index + 1))
    },

    'its upkeep says what time it is there, and what it has to clean up': async (scene) => {
      const { inspector, expect } = scene
      for (let round = 0; round < 3; round += 1) {
        const { lease } = await scene.running()
        await scene.mustSettle(lease, complete(), 'completed')
      }
      const { nowMs, tables, oldestSnapshotMs, file } = await inspector.upkeep()
      expect(Math.abs(nowMs - (await scene.nowMs()))).toBeLessThanOrEqual(second)
      for (const { name, liveCount, deadCount, isCleaned } of tables) {
        expect(liveCount, name).toBeGreaterThanOrEqual(0)
        expect(deadCount, name).toBeGreaterThanOrEqual(0)
        expect(isCleaned, name).toBe(true)
      }
      expect(oldestSnapshotMs ?? 0).toBeGreaterThanOrEqual(0)
      expect(file?.sizeBytes ?? 1).toBeGreaterThan(0)
      expect(file?.freeBytes ?? 0).toBeLessThanOrEqual(file?.sizeBytes ?? 0)
    },

    'a marker that nobody left is undefined': async (scene) => {
      scene.expect(await scene.marker(keyOf(scene.runtime, 'order-1').hash)).toBeUndefined()
    },

    'a planted marker is shown as it stands': async (scene) => {
      const { runtime, expect } = scene
      const hash = keyOf(runtime, 'order-1').hash
      const expiresAtMs = (await scene.nowMs()) + hour
      const marker = { jobId: runtime.newId(), generation: 3, fingerprint: '1:x', result: '1', expiresAtMs }
      await scene.plantMarker(hash, marker)
      expect(await scene.marker(hash)).toEqual({ keyHash: hash, state: 'completed', ...marker })
    },
  },
}
