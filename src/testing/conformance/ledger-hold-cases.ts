/** What an effect in doubt does to its job and key: nothing completes over it, and no ending frees the key. */
import type { SettleAction } from '../../core/storage.ts'
import { boom, bury, cancel, complete, retry } from './actions.ts'
import { fromTable, type CaseGroup } from './cases.ts'
import { closed, handlerInDoubt, mustResolve, opened, refOf, startedAgain, states } from './ledger-steps.ts'
import { day, hour, keyedJob, keyOf, minute } from './new-job.ts'
import { keyed, operator, type Scene } from './scene.ts'

async function expectHeld(scene: Scene, jobId: string, reason: string): Promise<void> {
  const { expect } = scene
  expect(await scene.record(jobId)).toMatchObject({ pillar: 'dlq', inDoubt: true, reason })
  const marker = await scene.marker(keyOf(scene.runtime, 'order-1').hash)
  expect(marker).toMatchObject({ state: 'in_doubt', jobId })
  expect(marker?.expiresAtMs).toBeUndefined()
  await scene.elapse(100 * day)
  await scene.driver.prune({ limit: 100, archiveRetentionMs: hour, dlqRetentionMs: hour })
  expect(await scene.place(jobId), 'no retention ends a doubt').toBe('dlq')
  expect(await scene.send(keyedJob(scene.runtime, 'order-1'))).toEqual({ kind: 'in-review', jobId })
}

interface Ending {
  readonly name: string
  readonly reason: string
  readonly end: (scene: Scene) => SettleAction
}

const endings: readonly Ending[] = [
  { name: 'its retries are used up', reason: 'MaxRetriesExceeded', end: () => bury() },
  { name: 'it fails for good', reason: 'FatalError', end: () => bury({ reason: 'FatalError' }) },
  { name: 'it times out', reason: 'Timeout', end: () => bury({ reason: 'Timeout' }) },
  { name: 'its lifetime is over', reason: 'RetryLifetimeExpired', end: () => bury({ reason: 'RetryLifetimeExpired' }) },
  { name: 'it was declined', reason: 'FatalError', end: () => bury({ reason: 'FatalError', terminalForMs: day }) },
  { name: 'it is cancelled', reason: 'InDoubt', end: () => cancel() },
  { name: 'it completes', reason: 'InDoubt', end: () => complete({ guard: true }) },
]

const held = (['open', 'ambiguous'] as const).flatMap((state) => endings.map((ending) => ({ ...ending, state })))

const holds = fromTable(
  held,
  ({ name, state }) => `an effect that is ${state} holds the key where ${name}`,
  async (scene, { state, end, reason }) => {
    const job = await scene.runningKeyed('order-1')
    const id = await opened(scene, job)
    if (state === 'ambiguous') await closed(scene, id, { state, result: null, failure: boom })
    await scene.mustSettle(job.lease, end(scene), 'dead')
    await expectHeld(scene, job.lease.jobId, reason)
  },
)

const closedStates = ['done', 'terminal', 'not-executed'] as const
const frees = fromTable(
  closedStates,
  (state) => `an effect that is ${state} holds nothing`,
  async (scene, state) => {
    const job = await scene.runningKeyed('order-1')
    await closed(scene, await opened(scene, job), { state, result: null })
    await scene.mustSettle(job.lease, bury(), 'dead')
    scene.expect(await scene.record(job.lease.jobId)).toMatchObject({ inDoubt: false })
    scene.expect(await scene.marker(keyOf(scene.runtime, 'order-1').hash)).toBeUndefined()
    scene.expect(await scene.send(keyedJob(scene.runtime, 'order-1'))).toEqual({ kind: 'inserted' })
  },
)

export const ledgerHoldCases: CaseGroup = {
  title: 'ledger: what a doubt holds',
  cases: {
    ...holds,
    ...frees,

    'the crash budget ends with the doubt': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      await opened(scene, job)
      for (const went of ['pending', 'pending', 'dead']) {
        const rescued = await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
        scene.expect(rescued).toMatchObject([{ went }])
        if (went !== 'dead') await startedAgain(scene)
      }
      await expectHeld(scene, job.lease.jobId, 'Interrupted')
    },

    'a cancel that was asked for before a crash ends in doubt': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      await opened(scene, job)
      await scene.inspector.cancel(job.lease.jobId, operator)
      const rescued = await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      scene.expect(rescued).toMatchObject([{ went: 'dead' }])
      await expectHeld(scene, job.lease.jobId, 'InDoubt')
    },

    'a cancel that comes with a retry ends in doubt': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      await opened(scene, job)
      await scene.inspector.cancel(job.lease.jobId, operator)
      await scene.mustSettle(job.lease, retry(), 'dead')
      await expectHeld(scene, job.lease.jobId, 'InDoubt')
    },

    'a job that waits with an effect in doubt is not simply cancelled': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      await opened(scene, job)
      await scene.mustSettle(job.lease, retry({ delayMs: hour }), 'retried')
      scene.expect(await scene.inspector.cancel(job.lease.jobId, operator)).toEqual({ kind: 'finished', state: 'dead' })
      await expectHeld(scene, job.lease.jobId, 'InDoubt')
    },

    'E32 a completion without the guard does not look': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      await opened(scene, job)
      await scene.mustSettle(job.lease, complete(), 'completed')
    },

    'a completion refused over a doubt is recognised when its reply was lost': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      await opened(scene, job)
      await scene.mustSettle(job.lease, complete({ guard: true }), 'dead')
      expect(await scene.settle(job.lease, complete({ guard: true }))).toMatchObject({
        outcome: 'dead',
        repeated: true,
      })
      expect(await scene.counter('jobs.completed')).toBe(0)
      expect(await scene.counter('jobs.dlq', 'InDoubt')).toBe(1)
    },

    'a completion over what is known completes': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      await closed(scene, await opened(scene, job))
      await closed(scene, await opened(scene, job, { ref: refOf(job, 'mail') }), { state: 'terminal', result: null })
      await scene.mustSettle(job.lease, complete({ guard: true }), 'completed')
      scene.expect(await states(scene, job.lease.jobId)).toEqual(['done', 'terminal'])
    },

    'what happened twice is not completed: a late outcome came after another call': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      const first = await opened(scene, job, { providerKey: null })
      const last = await opened(scene, job, { providerKey: null, seenIds: [first], absentIds: [first] })
      await closed(scene, last)
      await scene.driver.ledger([
        {
          kind: 'close',
          id: first,
          state: 'done',
          result: null,
          failure: null,
          replayed: false,
          supersedes: 'same-key',
        },
      ])
      await scene.mustSettle(job.lease, complete({ guard: true }), 'dead')
      scene.expect(await scene.record(job.lease.jobId)).toMatchObject({ reason: 'InDoubt', inDoubt: true })
    },

    'what the provider took for one call is completed': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      const first = await opened(scene, job)
      const last = await opened(scene, job, { seenIds: [first] })
      await closed(scene, last, { supersedes: 'none' })
      await closed(scene, first, { supersedes: 'none' })
      await scene.mustSettle(job.lease, complete({ guard: true }), 'completed')
    },

    'a doubt that was stated absent, or of another key, holds nothing here': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      await opened(scene, job)
      await scene.mustSettle(job.lease, bury(), 'dead')
      const absence = { statement: 'not there', settleAfterMs: 0 }
      await scene.resurrect(job.lease.jobId, { mode: 'new-operation', absence })
      const again = await startedAgain(scene)
      await scene.mustSettle(again.lease, complete({ guard: true }), 'completed')
      const doubtful = await scene.runningKeyed('order-2')
      await opened(scene, doubtful)
      const other = await scene.runningKeyed('order-3')
      await scene.mustSettle(other.lease, complete({ guard: true }), 'completed')
      expect(await scene.counter('jobs.completed')).toBe(2)
    },

    'a live marker of another job stays where a doubt is buried': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      await opened(scene, job)
      const hash = keyOf(scene.runtime, 'order-1').hash
      const jobId = scene.runtime.newId()
      await scene.plantMarker(hash, { jobId })
      await scene.mustSettle(job.lease, bury(), 'dead')
      scene.expect(await scene.marker(hash)).toMatchObject({ jobId, state: 'completed' })
      scene.expect(await scene.record(job.lease.jobId)).toMatchObject({ inDoubt: true })
    },

    // ---- markers that endings leave

    'E29 a decline that is final answers duplicates with its failure': async (scene) => {
      const { expect, runtime } = scene
      const job = await scene.runningKeyed('order-1')
      await scene.mustSettle(job.lease, bury({ reason: 'FatalError', terminalForMs: hour }), 'dead')
      const hash = keyOf(runtime, 'order-1').hash
      expect(await scene.marker(hash)).toMatchObject({ state: 'terminal', jobId: job.lease.jobId })
      expect(await scene.send(keyedJob(runtime, 'order-1'))).toMatchObject({
        kind: 'failed',
        jobId: job.lease.jobId,
        failure: { name: boom.name, message: boom.message },
      })
      expect(await scene.counter('idempotency.claims', 'released')).toBe(0)
      await scene.elapse(hour + minute)
      expect(await scene.send(keyedJob(runtime, 'order-1'))).toEqual({ kind: 'inserted' })
    },

    'E53 what was undone is undone: duplicates are answered already-compensated': async (scene) => {
      const { expect, runtime } = scene
      const job = await scene.runningKeyed('order-1')
      await closed(scene, await opened(scene, job))
      await scene.mustSettle(job.lease, complete({ guard: true, compensated: true }), 'completed')
      expect(await scene.marker(keyOf(runtime, 'order-1').hash)).toMatchObject({ state: 'compensated' })
      expect(await scene.send(keyedJob(runtime, 'order-1'))).toEqual({ kind: 'compensated', jobId: job.lease.jobId })
    },

    // ---- a decision sends the job back, and it ends

    'a job that a decision sent back frees its key where it ends with nothing in doubt': async (scene) => {
      const { expect, runtime } = scene
      const ends: readonly [string, SettleAction, string][] = [
        ['order-1', bury(), 'dead'],
        ['order-2', cancel(), 'cancelled'],
      ]
      for (const [key, action, outcome] of ends) {
        const { jobId, hash } = await handlerInDoubt(scene, key)
        await mustResolve(scene, jobId, { decision: 'retry' })
        expect(await scene.marker(hash), 'the key is held while it is hot').toMatchObject({ state: 'in_doubt' })
        const again = await startedAgain(scene)
        await scene.mustSettle(again.lease, action, outcome)
        expect(await scene.marker(hash)).toBeUndefined()
        expect(await scene.send(keyedJob(runtime, key))).toEqual({ kind: 'inserted' })
        await scene.fetchOne(keyed)
      }
    },

    'a job that a decision sent back and an operator cancels frees its key': async (scene) => {
      const { expect, runtime } = scene
      const { jobId, hash } = await handlerInDoubt(scene)
      await mustResolve(scene, jobId, { decision: 'retry' })
      expect(await scene.inspector.cancel(jobId, operator)).toEqual({ kind: 'cancelled' })
      expect(await scene.marker(hash)).toBeUndefined()
      expect(await scene.send(keyedJob(runtime, 'order-1'))).toEqual({ kind: 'inserted' })
    },

    'a job that a decision sent back replaces its doubt where it completes': async (scene) => {
      const { jobId, hash } = await handlerInDoubt(scene)
      await mustResolve(scene, jobId, { decision: 'retry' })
      const again = await startedAgain(scene)
      await scene.mustSettle(again.lease, complete(), 'completed')
      scene.expect(await scene.marker(hash)).toMatchObject({ state: 'completed', jobId })
    },

    'E54 an undoing that does not come to its end holds the key': async (scene) => {
      const { expect, runtime } = scene
      const ends: readonly (readonly [string, (job: Awaited<ReturnType<typeof startedAgain>>) => Promise<unknown>])[] =
        [
          ['order-1', (job) => scene.mustSettle(job.lease, bury(), 'dead')],
          ['order-2', (job) => scene.mustSettle(job.lease, cancel(), 'dead')],
          ['order-3', () => scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })],
        ]
      const once = { ...keyed, crashBudget: 0 }
      for (const [key, end] of ends) {
        const { jobId } = await handlerInDoubt(scene, key)
        await mustResolve(scene, jobId, { decision: 'compensate' })
        await end(await startedAgain(scene, once))
        expect(await scene.record(jobId)).toMatchObject({ pillar: 'dlq', inDoubt: true })
        expect(await scene.send(keyedJob(runtime, key))).toEqual({ kind: 'in-review', jobId })
      }
    },

    // ---- the owner of a call

    'a worker that is proven dead can make no late call; one that is silent may': async (scene) => {
      const { expect } = scene
      for (const [key, proven] of [
        ['order-1', false],
        ['order-2', true],
      ] as const) {
        await scene.worker('worker-1')
        const job = await scene.runningKeyed(key)
        await opened(scene, job)
        const provenDeadIds = proven ? ['worker-1'] : []
        await scene.driver.rescue({ deadWorkerIds: ['worker-1'], provenDeadIds, limit: 10 })
        expect((await scene.inspector.effects(job.lease.jobId)).map(({ ownerGone }) => ownerGone)).toEqual([proven])
        const again = await startedAgain(scene)
        await scene.mustSettle(again.lease, bury(), 'dead')
      }
    },

    'only calls of the worker that is proven dead are certain to have ended': async (scene) => {
      const { expect } = scene
      await scene.worker('worker-2')
      const job = await scene.runningKeyed('order-1')
      const first = await opened(scene, job)
      await opened(scene, job, { seenIds: [first], workerId: 'worker-2' })
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], provenDeadIds: ['worker-1'], limit: 10 })
      expect((await scene.inspector.effects(job.lease.jobId)).map(({ ownerGone }) => ownerGone)).toEqual([true, false])
    },
  },
}
