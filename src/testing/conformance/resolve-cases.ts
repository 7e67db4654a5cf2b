/** How a person ends a doubt: one transaction, from the revision the person saw, with a line in the audit log. */
import { decisions } from '../../core/inspector.ts'
import { bury, complete } from './actions.ts'
import { fromTable, type CaseGroup } from './cases.ts'
import {
  asksToUndo,
  closed,
  effectInDoubt,
  handlerInDoubt,
  inConflict,
  known,
  mustResolve,
  opened,
  refOf,
  resolve,
  startedAgain,
  states,
} from './ledger-steps.ts'
import { day, hour, keyedJob, newJob } from './new-job.ts'
import { keyed, type Scene } from './scene.ts'

const bob = { actor: 'bob', note: 'second click' }

async function audits(scene: Scene, jobId: string): Promise<readonly unknown[]> {
  const rows = await scene.inspector.audit({ limit: 100, beforeId: undefined })
  return rows
    .filter(({ act, subject }) => act === 'resolve' && subject === jobId)
    .map(({ detail }) => JSON.parse(detail) as unknown)
}

/** A decision that cannot be made leaves everything as it was. */
async function expectUntouched(scene: Scene, jobId: string, act: () => Promise<{ readonly kind: string }>) {
  const before = await scene.record(jobId)
  const effects = await scene.inspector.effects(jobId)
  const verdict = await act()
  scene.expect(await scene.record(jobId)).toEqual(before)
  scene.expect(await scene.inspector.effects(jobId)).toEqual(effects)
  scene.expect(await audits(scene, jobId)).toEqual([])
  return verdict
}

const eachDecision = fromTable(
  decisions.filter((decision) => decision !== 'compensate'),
  (decision) => `a second operator who decides to ${decision} is told who was first, and changes nothing`,
  async (scene, decision) => {
    const { jobId } = await effectInDoubt(scene)
    const { revision } = await scene.record(jobId)
    await mustResolve(scene, jobId, { decision, revision, result: '1' })
    const before = await scene.record(jobId)
    for (const second of decisions) {
      scene.expect(await resolve(scene, jobId, { decision: second, revision }, bob)).toEqual({
        kind: 'already-resolved',
        by: 'ada',
        as: decision,
      })
    }
    scene.expect(await scene.record(jobId)).toEqual(before)
    scene.expect(await audits(scene, jobId)).toHaveLength(1)
  },
)

const eachGuard = fromTable(
  decisions,
  (decision) => `${decision} is refused where the job has changed since it was seen`,
  async (scene, decision) => {
    const { jobId } = await handlerInDoubt(scene)
    const { revision } = await scene.record(jobId)
    const verdict = await expectUntouched(scene, jobId, () =>
      resolve(scene, jobId, { decision, revision: revision + 1 }),
    )
    scene.expect(verdict).toEqual({ kind: 'changed', revision })
  },
)

export const resolveCases: CaseGroup = {
  title: 'resolve: what each decision does',
  cases: {
    'adopt, an effect in doubt: the handler goes on and finds it done': async (scene) => {
      const { expect } = scene
      const { jobId, hash } = await effectInDoubt(scene)
      await mustResolve(scene, jobId, { decision: 'adopt', result: '{"id":"seen"}' })
      expect(await scene.place(jobId)).toBe('pending')
      expect(await scene.marker(hash), 'the key stays held').toMatchObject({ state: 'in_doubt', jobId })
      const again = await startedAgain(scene)
      expect(again).toMatchObject({ generation: 1, lease: { jobId } })
      expect(await known(scene, again)).toMatchObject([{ state: 'done', result: '{"id":"seen"}' }])
      await scene.mustSettle(again.lease, complete({ guard: true }), 'completed')
      expect(await scene.marker(hash)).toMatchObject({ state: 'completed', jobId })
    },

    'adopt, several calls of one effect: the newest is done, the others are the same action': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      const first = await opened(scene, job, { providerKey: null })
      await opened(scene, job, { providerKey: null, seenIds: [first] })
      await scene.mustSettle(job.lease, bury(), 'dead')
      await mustResolve(scene, job.lease.jobId, { decision: 'adopt', result: '1' })
      scene.expect(await states(scene, job.lease.jobId)).toEqual(['superseded', 'done'])
    },

    'adopt, a call that ended with an error: what happened after all has no failure': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      const id = await opened(scene, job)
      await closed(scene, id, { state: 'ambiguous', failure: { name: 'Error', message: 'socket hang up' } })
      await scene.mustSettle(job.lease, bury(), 'dead')
      await mustResolve(scene, job.lease.jobId, { decision: 'adopt', result: '1' })
      const again = await startedAgain(scene)
      scene.expect(await known(scene, again)).toMatchObject([{ state: 'done', result: '1', failure: null }])
    },

    'adopt, several effects in doubt: the one has to be named': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      const { jobId } = job.lease
      for (const item of ['a', 'b']) await opened(scene, job, { ref: refOf(job, 'mail', item) })
      await scene.mustSettle(job.lease, bury(), 'dead')
      const unnamed = await expectUntouched(scene, jobId, () => resolve(scene, jobId, { decision: 'adopt' }))
      expect(unnamed.kind === 'not-possible' && JSON.stringify(unnamed)).toMatch('several')
      const other = { decision: 'adopt', effect: { name: 'mail', item: 'c' } } as const
      const unknown = await expectUntouched(scene, jobId, () => resolve(scene, jobId, other))
      expect(unknown.kind).toBe('not-possible')
      await mustResolve(scene, jobId, { decision: 'adopt', result: '1', effect: { name: 'mail', item: 'b' } })
      expect(await states(scene, jobId)).toEqual(['open', 'done'])
      expect(await scene.place(jobId)).toBe('pending')
    },

    'adopt, the handler in doubt: the job is complete, with this result': async (scene) => {
      const { expect, runtime } = scene
      const { jobId, hash } = await handlerInDoubt(scene)
      await mustResolve(scene, jobId, { decision: 'adopt', result: '{"charge":"seen"}', markerLifeMs: hour })
      expect(await scene.record(jobId)).toMatchObject({
        pillar: 'archive',
        state: 'completed',
        result: '{"charge":"seen"}',
      })
      expect(await scene.marker(hash)).toMatchObject({ state: 'completed', jobId, result: '{"charge":"seen"}' })
      expect(await scene.counter('jobs.completed')).toBe(1)
      expect(await scene.send(keyedJob(runtime, 'order-1'))).toMatchObject({ kind: 'completed', jobId })
    },

    'adopt, a conflict: the job is complete, and the marker of the first stays': async (scene) => {
      const { expect } = scene
      const { jobId, hash, other } = await inConflict(scene)
      await mustResolve(scene, jobId, { decision: 'adopt', result: '1' })
      expect(await scene.record(jobId)).toMatchObject({ pillar: 'archive', state: 'completed' })
      expect(await scene.marker(hash)).toMatchObject({ state: 'completed', jobId: other })
    },

    'retry, an effect in doubt: it did not happen, and is called again': async (scene) => {
      const { expect } = scene
      const { jobId } = await effectInDoubt(scene)
      await mustResolve(scene, jobId, { decision: 'retry' })
      expect(await states(scene, jobId)).toEqual(['not-executed'])
      const again = await startedAgain(scene)
      const [seen] = await known(scene, again)
      await opened(scene, again, { seenIds: [seen?.id ?? ''] })
    },

    'retry, the handler in doubt: it runs again, with new budgets and the same key': async (scene) => {
      const { expect } = scene
      const { jobId } = await handlerInDoubt(scene)
      await mustResolve(scene, jobId, { decision: 'retry' })
      const again = await startedAgain(scene)
      expect(again).toMatchObject({ generation: 1, failureCount: 0, crashCount: 0, lease: { jobId } })
      expect(await scene.counter('jobs.resurrected', 'resolve')).toBe(1)
    },

    'retry, a conflict: its key is another job’s, so it is skipped and never runs': async (scene) => {
      const { expect } = scene
      const { jobId, other } = await inConflict(scene)
      await mustResolve(scene, jobId, { decision: 'retry' })
      const again = await scene.fetchOne(keyed)
      expect(await scene.start(again.lease, keyed)).toMatchObject({ kind: 'duplicate', jobId: other })
    },

    'abandon: the operation is given up, and duplicates are answered already-failed': async (scene) => {
      const { expect, runtime } = scene
      for (const [key, make] of [
        ['order-1', effectInDoubt],
        ['order-2', handlerInDoubt],
      ] as const) {
        const { jobId, hash } = await make(scene, key)
        await mustResolve(scene, jobId, { decision: 'abandon', markerLifeMs: hour })
        expect(await scene.record(jobId)).toMatchObject({ pillar: 'archive', state: 'cancelled' })
        expect(await scene.marker(hash)).toMatchObject({ state: 'terminal', jobId })
        const answer = await scene.send(keyedJob(runtime, key))
        expect(answer).toMatchObject({ kind: 'failed', jobId, failure: { name: 'Abandoned' } })
        expect(answer.kind === 'failed' && answer.failure.message).toMatch('ada')
      }
      expect(await scene.counter('jobs.cancelled')).toBe(2)
    },

    'abandon: what was in doubt says so': async (scene) => {
      const { jobId } = await effectInDoubt(scene)
      await mustResolve(scene, jobId, { decision: 'abandon' })
      scene.expect(await states(scene, jobId)).toEqual(['abandoned'])
    },

    'abandon, a conflict: the marker of the first stays': async (scene) => {
      const { jobId, hash, other } = await inConflict(scene)
      await mustResolve(scene, jobId, { decision: 'abandon' })
      scene.expect(await scene.place(jobId)).toBe('archive')
      scene.expect(await scene.marker(hash)).toMatchObject({ state: 'completed', jobId: other })
    },

    'compensate: the worker is asked to undo, and a duplicate never acts again': async (scene) => {
      const { expect, runtime } = scene
      const { jobId, hash } = await handlerInDoubt(scene)
      await mustResolve(scene, jobId, { decision: 'compensate' })
      const again = await startedAgain(scene)
      expect(await asksToUndo(scene, again)).toBe(true)
      await scene.mustSettle(again.lease, complete({ guard: true, compensated: true, result: null }), 'completed')
      expect(await scene.marker(hash)).toMatchObject({ state: 'compensated', jobId })
      expect(await scene.send(keyedJob(runtime, 'order-1'))).toEqual({ kind: 'compensated', jobId })
    },

    'what comes after an operation that was undone is the next one': async (scene) => {
      const { expect, runtime } = scene
      const { jobId } = await handlerInDoubt(scene)
      await mustResolve(scene, jobId, { decision: 'compensate' })
      const again = await startedAgain(scene)
      const { generation } = await scene.record(jobId)
      await scene.mustSettle(again.lease, complete({ guard: true, compensated: true, result: null }), 'completed')
      await scene.elapse(61 * day)
      const next = keyedJob(runtime, 'order-1')
      await scene.insert(next)
      expect((await scene.record(next.id)).generation).toBe(generation + 1)
    },

    'compensate waits until it is known what has to be undone': async (scene) => {
      const { jobId } = await effectInDoubt(scene)
      const verdict = await expectUntouched(scene, jobId, () => resolve(scene, jobId, { decision: 'compensate' }))
      scene.expect(verdict.kind === 'not-possible' && JSON.stringify(verdict)).toMatch('in doubt')
    },

    'compensate asked for twice, over a failure, is one wish': async (scene) => {
      const { jobId } = await handlerInDoubt(scene)
      await mustResolve(scene, jobId, { decision: 'compensate' })
      const first = await startedAgain(scene)
      await scene.mustSettle(first.lease, bury(), 'dead')
      await mustResolve(scene, jobId, { decision: 'compensate' })
      const again = await startedAgain(scene)
      scene.expect(await asksToUndo(scene, again)).toBe(true)
      scene.expect(await scene.inspector.effects(jobId)).toHaveLength(1)
    },

    // ---- guards

    ...eachDecision,
    ...eachGuard,

    'E49 of two operators at once one decides': async (scene) => {
      const { expect } = scene
      const { jobId } = await effectInDoubt(scene)
      const { revision } = await scene.record(jobId)
      const other = await scene.second()
      const request = { jobId, revision, effect: undefined, result: '1', markerLifeMs: hour }
      const verdicts = await scene.together(
        scene.inspector.resolve({ ...request, decision: 'adopt', id: scene.runtime.newId() }, bob),
        other.inspector.resolve({ ...request, decision: 'abandon', id: scene.runtime.newId() }, bob),
      )
      expect(verdicts.map(({ kind }) => kind).sort()).toEqual(['already-resolved', 'resolved'])
      expect(await audits(scene, jobId)).toHaveLength(1)
    },

    'a job that waits for nobody, and one that is nowhere, have nothing to decide': async (scene) => {
      const { expect } = scene
      expect(await resolve(scene, scene.runtime.newId())).toEqual({ kind: 'not-found' })
      const { lease } = await scene.runningKeyed('order-1')
      expect(await resolve(scene, lease.jobId)).toEqual({ kind: 'not-found' })
      await scene.mustSettle(lease, bury(), 'dead')
      expect(await resolve(scene, lease.jobId)).toEqual({ kind: 'not-found' })
      expect(await scene.place(lease.jobId)).toBe('dlq')
    },

    'the audit log keeps the decision, the reason and what was in doubt': async (scene) => {
      const { jobId } = await effectInDoubt(scene)
      const { revision } = await scene.record(jobId)
      await mustResolve(scene, jobId, { decision: 'retry' })
      scene
        .expect(await audits(scene, jobId))
        .toEqual([
          { decision: 'retry', revision, reason: 'MaxRetriesExceeded', effects: [{ name: 'charge', item: '' }] },
        ])
    },

    'a duplicate that comes meanwhile is answered, and a raw one that runs is skipped': async (scene) => {
      const { expect, runtime } = scene
      const { job, jobId } = await effectInDoubt(scene)
      expect(await scene.send(keyedJob(runtime, 'order-1'))).toEqual({ kind: 'in-review', jobId })
      const raw = newJob(runtime, { type: keyed.type, payload: '{"amount":1}' })
      await scene.insert(raw)
      const fetched = await scene.fetchOne(keyed)
      const key = { lease: fetched.lease, key: job.key ?? { hash: '', prefix: '', scope: '' } }
      expect(await scene.driver.claim([{ ...key, fingerprint: job.fingerprint ?? '' }])).toEqual([{ kind: 'claimed' }])
      // It holds the claim, so no decision may put another job beside it.
      expect(await resolve(scene, jobId, { decision: 'retry' })).toEqual({ kind: 'active', jobId: raw.id })
      expect(await scene.start(fetched.lease, keyed)).toMatchObject({ kind: 'duplicate', jobId, holder: 'in-review' })
      const skip = { kind: 'skip', duplicateOf: jobId, holder: 'in-review', result: null } as const
      await scene.mustSettle(fetched.lease, skip, 'skipped')
      await mustResolve(scene, jobId, { decision: 'adopt', result: '1' })
      // While the job is hot again its key is held by itself, and a duplicate is still told of the review.
      expect(await scene.send(keyedJob(runtime, 'order-1'))).toEqual({ kind: 'in-review', jobId })
    },

    'a late outcome after a decision is evidence and ends no other way': async (scene) => {
      const { expect } = scene
      const { jobId, intentId } = await effectInDoubt(scene)
      await mustResolve(scene, jobId, { decision: 'retry' })
      await closed(scene, intentId)
      const again = await startedAgain(scene)
      expect(await known(scene, again)).toMatchObject([{ state: 'done', result: '{"id":"ch_1"}' }])
    },

    'a job without a key has no effects to undo': async (scene) => {
      const job = await scene.running()
      await scene.mustSettle(job.lease, bury({ reason: 'ReviewRequested', hold: true }), 'dead')
      const { jobId } = job.lease
      const verdict = await expectUntouched(scene, jobId, () => resolve(scene, jobId, { decision: 'compensate' }))
      scene.expect(verdict.kind).toBe('not-possible')
      await mustResolve(scene, jobId, { decision: 'retry' })
      scene.expect(await scene.place(jobId)).toBe('pending')
    },
  },
}
