/** What operators see of effects: the newest calls, by type and effect, told apart by how they ended. */
import { bury } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { closed, opened, refOf, startedAgain } from './ledger-steps.ts'
import { keyed } from './scene.ts'

export const observedCases: CaseGroup = {
  title: 'observed effects',
  cases: {
    'calls are counted by type and effect, by how they ended, and by whether they took a key along': async (scene) => {
      const { expect } = scene
      expect(await scene.inspector.observedEffects(100)).toEqual([])
      const job = await scene.runningKeyed('order-1')
      await closed(scene, await opened(scene, job))
      await closed(scene, await opened(scene, job, { ref: refOf(job, 'charge', 'tip') }), { state: 'terminal' })
      await opened(scene, job, { ref: refOf(job, 'mail', 'a'), providerKey: null })
      const lost = await opened(scene, job, { ref: refOf(job, 'mail', 'b'), providerKey: null })
      await closed(scene, lost, { state: 'ambiguous', result: null })
      // What only remembers is no call.
      const { lease } = job
      const ref = refOf(job, 'note', '', 'memo')
      const memo = { kind: 'remember', lease, ref, id: scene.runtime.newId(), result: '1' } as const
      await scene.driver.ledger([{ ...memo, workerId: 'worker-1', attempt: 1, keepMs: 1_000 }])
      expect(await scene.inspector.observedEffects(100)).toEqual([
        {
          type: keyed.type,
          effect: 'charge',
          callCount: 2,
          outcomes: { done: 1, terminal: 1 },
          keyedCount: 2,
          doubledCount: 0,
        },
        {
          type: keyed.type,
          effect: 'mail',
          callCount: 2,
          outcomes: { open: 1, ambiguous: 1 },
          keyedCount: 0,
          doubledCount: 0,
        },
      ])
    },

    'what happened twice is seen, and what was asked for twice under one key is not': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      for (const [name, second] of [
        ['charge', 'key-1'],
        ['mail', 'key-2'],
      ] as const) {
        const ref = refOf(job, name)
        const first = await opened(scene, job, { ref })
        const last = await opened(scene, job, { ref, seenIds: [first], providerKey: second })
        for (const id of [first, last]) {
          const request = { kind: 'close', id, state: 'done', result: '1', failure: null } as const
          await scene.driver.ledger([{ ...request, replayed: false, supersedes: 'none' }])
        }
      }
      const seen = await scene.inspector.observedEffects(100)
      scene.expect(seen.map(({ effect, doubledCount }) => [effect, doubledCount])).toEqual([
        ['charge', 0],
        ['mail', 2],
      ])
    },

    'the newest calls are read and no more, wherever their jobs are, and of lost jobs none': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      for (const item of ['a', 'b', 'c']) {
        await closed(scene, await opened(scene, job, { ref: refOf(job, 'mail', item) }))
        await scene.elapse(1_000)
      }
      const counted = async (limit: number): Promise<number | undefined> =>
        (await scene.inspector.observedEffects(limit))[0]?.callCount
      expect([await counted(2), await counted(10)]).toEqual([2, 3])
      await scene.mustSettle(job.lease, bury(), 'dead')
      expect(await counted(10)).toBe(3)
      await scene.inspector.purge({ jobIds: [job.lease.jobId], limit: 1 }, { actor: 'ada', note: '' })
      expect(await counted(10)).toBeUndefined()
      await scene.addKeyed('order-1')
      const next = await startedAgain(scene)
      await closed(scene, await opened(scene, next, { ref: refOf(next, 'mail', 'd') }))
      expect(await counted(10)).toBe(1)
    },
  },
}
