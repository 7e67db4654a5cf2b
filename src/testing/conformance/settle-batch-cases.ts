/** Batches of settlements: mixed outcomes, the same lease twice, stale and refused rows among good ones. */
import type { FetchedJob } from '../../core/job.ts'
import type { SettleAction } from '../../core/storage.ts'
import { bury, cancel, complete, defer, release, retry, skip } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { keyedJob, keyOf, minute, newJob } from './new-job.ts'
import { keyed, plain, type Scene } from './scene.ts'

/** Keyed jobs order-0, order-1, … that run. */
async function runningMany(scene: Scene, count: number): Promise<readonly FetchedJob[]> {
  await scene.insert(
    ...Array.from({ length: count }, (_, n) => keyedJob(scene.runtime, `order-${n}`, { priority: count - n })),
  )
  const jobs = await scene.fetch([keyed])
  scene.expect(jobs).toHaveLength(count)
  const verdicts = await scene.driver.start(jobs.map(({ lease }) => ({ lease, policy: keyed })))
  scene.expect(verdicts.every((verdict) => verdict.kind === 'started')).toBe(true)
  return jobs
}

export const settleBatchCases: CaseGroup = {
  title: 'settle: batches',
  cases: {
    'every outcome in one batch, each with its own verdict': async (scene) => {
      const { runtime, expect } = scene
      const actions: readonly SettleAction[] = [
        complete(),
        complete({ keep: { kind: 'stub', forMs: minute } }),
        retry(),
        retry({ delayMs: minute }),
        bury(),
        bury({ hold: true }),
        skip(runtime.newId()),
        defer(),
        cancel(),
        cancel(true),
        release,
      ]
      const jobs = await runningMany(scene, actions.length)
      const verdicts = await scene.driver.settle(
        jobs.map(({ lease }, n) => ({ lease, action: actions[n] ?? complete() })),
      )
      expect(verdicts.map((verdict) => (verdict.kind === 'settled' ? verdict.outcome : verdict.kind))).toEqual([
        'completed',
        'completed',
        'retried',
        'retried',
        'dead',
        'dead',
        'skipped',
        'deferred',
        'cancelled',
        'dead',
        'released',
      ])
      const places = await Promise.all(jobs.map(({ lease }) => scene.place(lease.jobId)))
      expect(places).toEqual([
        'archive',
        'archive',
        'pending',
        'scheduled',
        'dlq',
        'dlq',
        'archive',
        'scheduled',
        'archive',
        'dlq',
        'pending',
      ])
      const markers = await Promise.all(jobs.map((_, n) => scene.marker(keyOf(runtime, `order-${n}`).hash)))
      expect(markers.flatMap((marker, n) => (marker === undefined ? [] : [[n, marker.state]]))).toEqual([
        [0, 'completed'],
        [1, 'completed'],
        [5, 'in_doubt'],
        [9, 'in_doubt'],
      ])
    },

    'the same lease twice in one batch settles once': async (scene) => {
      const { expect } = scene
      const [job] = await runningMany(scene, 1)
      const lease = (job as FetchedJob).lease
      const verdicts = await scene.driver.settle([
        { lease, action: complete() },
        { lease, action: complete() },
      ])
      expect(verdicts).toEqual([
        { kind: 'settled', outcome: 'completed', repeated: false },
        { kind: 'settled', outcome: 'completed', repeated: true },
      ])
      expect(await scene.counter('jobs.completed')).toBe(1)
      expect(await scene.all('archive')).toHaveLength(1)
    },

    'of two different settlements of one lease only the first takes effect': async (scene) => {
      const { expect } = scene
      const [job] = await runningMany(scene, 1)
      const lease = (job as FetchedJob).lease
      const verdicts = await scene.driver.settle([
        { lease, action: complete() },
        { lease, action: bury({ hold: true }) },
      ])
      expect(verdicts[0]).toEqual({ kind: 'settled', outcome: 'completed', repeated: false })
      // What stands is what is told, however the second call was worded.
      expect(verdicts[1]).toEqual({ kind: 'settled', outcome: 'completed', repeated: true })
      expect(await scene.place(lease.jobId)).toBe('archive')
      expect(await scene.all('dlq')).toHaveLength(0)
      expect((await scene.marker(keyOf(scene.runtime, 'order-0').hash))?.state).toBe('completed')
    },

    'stale, unknown and refused rows cost their neighbours nothing': async (scene) => {
      const { runtime, expect } = scene
      const jobs = await runningMany(scene, 5)
      const [a, b, c, d, e] = jobs as readonly [FetchedJob, FetchedJob, FetchedJob, FetchedJob, FetchedJob]
      const verdicts = await scene.driver.settle([
        { lease: a.lease, action: complete() },
        { lease: { ...b.lease, token: b.lease.token + 1000 }, action: complete() },
        { lease: { jobId: runtime.newId(), token: 1 }, action: retry() },
        { lease: c.lease, action: complete({ children: [newJob(runtime, { priority: 5000 })] }) },
        { lease: d.lease, action: retry({ delayMs: minute }) },
        { lease: e.lease, action: bury() },
      ])
      expect(verdicts.map((verdict) => (verdict.kind === 'settled' ? verdict.outcome : verdict.kind))).toEqual([
        'completed',
        'lost',
        'lost',
        'refused',
        'retried',
        'dead',
      ])
      expect(await Promise.all(jobs.map(({ lease }) => scene.place(lease.jobId)))).toEqual([
        'archive',
        'processing',
        'processing',
        'scheduled',
        'dlq',
      ])
      expect(await scene.counter('jobs.completed')).toBe(1)
    },

    'H26 the token of another job opens nothing': async (scene) => {
      const [a, b] = (await runningMany(scene, 2)) as readonly [FetchedJob, FetchedJob]
      const crossed = [
        { lease: { jobId: a.lease.jobId, token: b.lease.token }, action: complete() },
        { lease: { jobId: b.lease.jobId, token: a.lease.token }, action: complete() },
      ]
      scene.expect(await scene.driver.settle(crossed)).toEqual([{ kind: 'lost' }, { kind: 'lost' }])
      scene.expect(await scene.all('archive')).toHaveLength(0)
    },

    'a large batch settles whole, and repeating it changes nothing': async (scene) => {
      const { expect } = scene
      const jobs = await runningMany(scene, 100)
      const settlements = jobs.map(({ lease }, n) => ({ lease, action: n % 10 === 0 ? bury() : complete() }))
      const first = await scene.driver.settle(settlements)
      expect(first.every((verdict) => verdict.kind === 'settled' && !verdict.repeated)).toBe(true)
      const stats = await scene.inspector.stats()
      const again = await scene.driver.settle(settlements)
      expect(again.every((verdict) => verdict.kind === 'settled' && verdict.repeated)).toBe(true)
      expect(await scene.inspector.stats()).toEqual(stats)
      expect(await scene.all('archive')).toHaveLength(90)
      expect(await scene.all('dlq')).toHaveLength(10)
    },

    'children of two jobs of one batch with the same key: one gets in': async (scene) => {
      const { runtime, expect } = scene
      const [a, b] = (await runningMany(scene, 2)) as readonly [FetchedJob, FetchedJob]
      const children = [keyedJob(runtime, 'child'), keyedJob(runtime, 'child')] as const
      await scene.driver.settle([
        { lease: a.lease, action: complete({ children: [children[0]] }) },
        { lease: b.lease, action: complete({ children: [children[1]] }) },
      ])
      expect(await scene.all('archive')).toHaveLength(2)
      expect([...(await Promise.all(children.map(({ id }) => scene.place(id))))].sort()).toEqual(['nowhere', 'pending'])
    },

    'no settlements are no work': async (scene) => {
      scene.expect(await scene.driver.settle([])).toEqual([])
      scene.expect(await scene.fetch([plain])).toHaveLength(0)
    },
  },
}
