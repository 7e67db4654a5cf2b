/**
 * Two connections at the same data, at the same moment. What a storage without a second connection does here is still
 * two calls in flight at once.
 */
import type { FetchedJob } from '../../core/job.ts'
import { bury, complete, release } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { fingerprint, keyedJob, keyOf, newJob, policy } from './new-job.ts'
import { keyed, operator, plain, type Scene } from './scene.ts'

const fast = policy({ fastStart: true })
const rounds = 10

async function rawPair(scene: Scene): Promise<readonly [FetchedJob, FetchedJob]> {
  await scene.insert(...[1, 2].map(() => newJob(scene.runtime, { type: keyed.type })))
  const jobs = await scene.fetch([keyed])
  scene.expect(jobs).toHaveLength(2)
  return jobs as readonly [FetchedJob, FetchedJob]
}

export const raceCases: CaseGroup = {
  title: 'races of two connections',
  cases: {
    'R1 of two claims of one key exactly one wins': async (scene) => {
      const { runtime, expect } = scene
      const other = await scene.second()
      for (let round = 0; round < rounds; round += 1) {
        const [a, b] = await rawPair(scene)
        const same = { key: keyOf(runtime, `order-${round}`), fingerprint: fingerprint(runtime, 1) }
        const verdicts = await scene.together(
          scene.driver.claim([{ lease: a.lease, ...same }]),
          other.claim([{ lease: b.lease, ...same }]),
        )
        expect(
          verdicts
            .flat()
            .map(({ kind }) => kind)
            .sort(),
        ).toEqual(['claimed', 'held'])
        await scene.driver.settle([a, b].map(({ lease }) => ({ lease, action: bury() })))
      }
    },

    'R1 of two enqueues of one key exactly one gets in': async (scene) => {
      const { runtime, expect } = scene
      const other = await scene.second()
      for (let round = 0; round < rounds; round += 1) {
        const [a, b] = [keyedJob(runtime, `order-${round}`), keyedJob(runtime, `order-${round}`)]
        const verdicts = await scene.together(scene.driver.enqueue([a]), other.enqueue([b]))
        expect(
          verdicts
            .flat()
            .map(({ kind }) => kind)
            .sort(),
        ).toEqual(['active', 'inserted'])
      }
      expect(await scene.counter('jobs.enqueued')).toBe(rounds)
    },

    'of an enqueue and a claim of one key exactly one gets it': async (scene) => {
      const { runtime, expect } = scene
      const other = await scene.second()
      for (let round = 0; round < rounds; round += 1) {
        const { lease } = await scene.fetched(keyed)
        const job = keyedJob(runtime, `order-${round}`, { says: 1 })
        const claim = { lease, key: keyOf(runtime, `order-${round}`), fingerprint: fingerprint(runtime, 1) }
        const [enqueued, claimed] = await scene.runtime.complete(
          Promise.all([scene.driver.enqueue([job]), other.claim([claim])]),
        )
        expect([enqueued[0]?.kind === 'inserted', claimed[0]?.kind === 'claimed'].filter(Boolean)).toHaveLength(1)
        await scene.settle(lease, bury())
        await scene.inspector.cancel(job.id, operator)
      }
    },

    'R2 R3 a start never runs past the completion of its key': async (scene) => {
      const { runtime, expect } = scene
      const other = await scene.second()
      for (let round = 0; round < rounds; round += 1) {
        const first = await scene.runningKeyed(`order-${round}`)
        const { lease } = await scene.fetched(keyed)
        const claim = { lease, key: keyOf(runtime, `order-${round}`), fingerprint: first.fingerprint ?? '' }
        const [, verdict] = await scene.runtime.complete(
          Promise.all([
            scene.driver.settle([{ lease: first.lease, action: complete() }]),
            other.claim([claim]).then(async ([claimed]) => {
              if (claimed?.kind !== 'claimed') return claimed?.kind
              return (await other.start([{ lease, policy: keyed }]))[0]?.kind
            }),
          ]),
        )
        expect(['held', 'duplicate']).toContain(verdict)
        await scene.settle(lease, release)
        await scene.inspector.cancel(lease.jobId, operator)
      }
    },

    'no row is fetched twice': async (scene) => {
      const { runtime, expect } = scene
      const other = await scene.second()
      await scene.insert(...Array.from({ length: 60 }, () => newJob(runtime)))
      const seen: FetchedJob[] = []
      for (let round = 0; round < rounds; round += 1) {
        const jobs = await scene.together(
          scene.fetch([plain], { limit: 4 }),
          scene.fetch([fast], { limit: 3, workerId: 'worker-2', driver: other }),
        )
        seen.push(...jobs.flat())
      }
      for (let left = 1; left > 0;) {
        const jobs = await scene.fetch([plain])
        left = jobs.length
        seen.push(...jobs)
      }
      expect(seen).toHaveLength(60)
      expect(new Set(seen.map(({ lease }) => lease.jobId)).size).toBe(60)
      expect(new Set(seen.map(({ lease }) => lease.token)).size).toBe(60)
    },

    'a global limit is never overshot': async (scene) => {
      const { runtime, expect } = scene
      const other = await scene.second()
      await scene.inspector.setQueue({ name: 'default', maxConcurrency: 5 }, operator)
      await scene.insert(...Array.from({ length: 80 }, () => newJob(runtime)))
      const held: FetchedJob[] = []
      for (let round = 0; round < rounds; round += 1) {
        const jobs = await scene.together(
          scene.fetch([plain], { limit: 4 }),
          scene.fetch([fast], { limit: 4, workerId: 'worker-2', driver: other }),
          scene.fetch([plain], { limit: 4, workerId: 'worker-3', driver: other }),
        )
        held.push(...jobs.flat())
        expect(held.length).toBe(5)
        const rows = (await scene.all('hot')).filter((row) => row.workerId !== null)
        expect(rows).toHaveLength(5)
        const leaving = held.splice(0, 1 + (round % 4))
        await scene.driver.settle(leaving.map(({ lease }) => ({ lease, action: bury() })))
      }
    },

    'of a settle and a rescue exactly one takes effect': async (scene) => {
      const { expect } = scene
      const other = await scene.second()
      for (let round = 0; round < rounds; round += 1) {
        await scene.worker('worker-1')
        const job = await scene.runningKeyed(`order-${round}`)
        const [[settled], rescued] = await scene.runtime.complete(
          Promise.all([
            scene.driver.settle([{ lease: job.lease, action: complete() }]),
            other.rescue({ deadWorkerIds: ['worker-1'], limit: 10 }),
          ]),
        )
        const isSettled = settled?.kind === 'settled'
        expect(rescued.map(({ jobId }) => jobId)).toEqual(isSettled ? [] : [job.lease.jobId])
        expect(await scene.place(job.lease.jobId)).toBe(isSettled ? 'archive' : 'pending')
        expect((await scene.marker(job.key?.hash ?? '')) !== undefined).toBe(isSettled)
        if (!isSettled) await scene.inspector.cancel(job.lease.jobId, operator)
      }
    },

    'one lease settled from two connections counts once': async (scene) => {
      const { expect } = scene
      const other = await scene.second()
      for (let round = 0; round < rounds; round += 1) {
        const job = await scene.running()
        const batch = [{ lease: job.lease, action: complete() }]
        const verdicts = await scene.together(scene.driver.settle(batch), other.settle(batch))
        const repeated = verdicts.flat().map((verdict) => verdict.kind === 'settled' && verdict.repeated)
        expect([...repeated].sort()).toEqual([false, true])
      }
      expect(await scene.counter('jobs.completed')).toBe(rounds)
    },

    'one dead worker rescued from two connections is charged once': async (scene) => {
      const { expect } = scene
      const other = await scene.second()
      const jobs = [await scene.running(), await scene.running()]
      const request = { deadWorkerIds: ['worker-1'], limit: 10 }
      const rescued = await scene.together(scene.driver.rescue(request), other.rescue(request))
      expect(rescued.flat()).toHaveLength(2)
      for (const { lease } of jobs) expect(await scene.record(lease.jobId)).toMatchObject({ crashCount: 1 })
      expect(await scene.counter('jobs.rescued')).toBe(2)
    },

    'one scheduled job promoted from two connections is ready once': async (scene) => {
      const { expect } = scene
      const other = await scene.second()
      await scene.add({ due: { kind: 'in', delayMs: 1000 } })
      await scene.elapse(2000)
      const done = await scene.together(scene.driver.promote({ limit: 5 }), other.promote({ limit: 5 }))
      expect(done.reduce((sum, { promotedCount }) => sum + promotedCount, 0)).toBe(1)
    },

    'of two cancels one finds it cancelled': async (scene) => {
      const { expect } = scene
      const other = await scene.second()
      const job = await scene.add()
      const verdicts = await scene.together(
        scene.inspector.cancel(job.id, operator),
        other.inspector.cancel(job.id, operator),
      )
      expect(verdicts.map(({ kind }) => kind).sort()).toEqual(['cancelled', 'finished'])
      expect(await scene.counter('jobs.cancelled')).toBe(1)
    },

    'of two operators who bring one job back the second is told': async (scene) => {
      const { expect } = scene
      const other = await scene.second()
      const job = await scene.running()
      await scene.mustSettle(job.lease, bury(), 'dead')
      const { revision } = await scene.record(job.lease.jobId)
      const request = {
        jobId: job.lease.jobId,
        mode: 'continue',
        payload: undefined,
        key: undefined,
        revision,
        absence: undefined,
      } as const
      const verdicts = await scene.together(
        scene.inspector.resurrect(request, operator, undefined),
        other.inspector.resurrect(request, operator, undefined),
      )
      expect(verdicts.filter(({ kind }) => kind === 'resurrected')).toHaveLength(1)
      expect(await scene.counter('jobs.resurrected')).toBe(1)
    },

    'what one connection commits the other one sees': async (scene) => {
      const other = await scene.second()
      const job = await scene.add()
      scene.expect(await other.inspector.get(job.id)).toEqual(await scene.record(job.id))
      const fetched = await scene.fetch([plain], { driver: other })
      scene.expect(fetched).toHaveLength(1)
      scene.expect(await scene.place(job.id)).toBe('fetched')
    },
  },
}
