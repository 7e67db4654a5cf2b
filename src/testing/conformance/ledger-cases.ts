/** The ledger itself: intents under a lease, outcomes as evidence, memos that are remembered once. */
import type { LedgerRequest } from '../../core/ledger.ts'
import { bury, complete, retry } from './actions.ts'
import type { CaseGroup } from './cases.ts'
import { ask, closed, closeOf, known, opened, openOf, refOf, startedAgain, states } from './ledger-steps.ts'
import { minute, second } from './new-job.ts'
import { keyed, plain, present, type Scene } from './scene.ts'
import type { FetchedJob } from '../../core/job.ts'

function recall(job: FetchedJob, name = 'rate'): LedgerRequest {
  return { kind: 'recall', lease: job.lease, ref: refOf(job, name, '', 'memo') }
}

function remember(scene: Scene, job: FetchedJob, result: string | null, name = 'rate'): LedgerRequest {
  const ref = refOf(job, name, '', 'memo')
  return {
    kind: 'remember',
    lease: job.lease,
    ref,
    id: scene.runtime.newId(),
    result,
    workerId: 'worker-1',
    attempt: 1,
    keepMs: minute,
  }
}

export const ledgerCases: CaseGroup = {
  title: 'ledger',
  cases: {
    'an intent is opened once, and whoever has not seen it is told what stands': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      const request = openOf(scene, job)
      expect(await ask(scene, request)).toEqual({ kind: 'opened', firstAgeMs: 0, hasOthers: false })
      await scene.elapse(minute)
      const [intent, ...others] = await known(scene, job)
      expect(others).toEqual([])
      expect(intent).toMatchObject({
        id: request.id,
        state: 'open',
        fingerprint: 'f1',
        input: '{"amount":1}',
        result: null,
        failure: null,
        jobId: job.lease.jobId,
        workerId: 'worker-1',
        attempt: 1,
        providerKey: 'key-1',
        replayed: false,
        ownerGone: false,
      })
      expect(intent?.ageMs).toBeGreaterThanOrEqual(minute)
      expect(intent?.ageMs).toBeLessThan(minute + 30 * second)
      expect(await states(scene, job.lease.jobId)).toEqual(['open'])
    },

    'E7 an intent repeated after a lost reply is opened, and is one row': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      const request = openOf(scene, job)
      await ask(scene, request)
      expect((await ask(scene, request)).kind).toBe('opened')
      await closed(scene, request.id)
      expect((await ask(scene, request)).kind).toBe('opened')
      expect(await states(scene, job.lease.jobId)).toEqual(['done'])
    },

    'an intent that has seen what stands is opened with the age of the first': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      const first = await opened(scene, job)
      await closed(scene, first, { state: 'ambiguous', result: null })
      await scene.elapse(minute)
      const second = openOf(scene, job, { seenIds: [first] })
      const verdict = await ask(scene, second)
      expect(verdict.kind === 'opened' && verdict.firstAgeMs >= minute).toBe(true)
      await scene.elapse(minute)
      expect((await ask(scene, openOf(scene, job, { seenIds: [first] }))).kind, 'it has not seen the second').toBe(
        'known',
      )
      expect((await known(scene, job)).map(({ id }) => id)).toEqual([first, second.id])
    },

    'an intent is told of effects of other names, and of nothing else': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      const other = await scene.runningKeyed('order-2')
      const hasOthers = async (request: LedgerRequest): Promise<boolean | undefined> => {
        const verdict = await ask(scene, request)
        return verdict.kind === 'opened' ? verdict.hasOthers : undefined
      }
      await opened(scene, other, { ref: refOf(other, 'audit') })
      await ask(scene, remember(scene, job, '1'))
      const mail = openOf(scene, job, { ref: refOf(job, 'mail', 'a') })
      scene.expect(await hasOthers(mail)).toBe(false)
      scene.expect(await hasOthers(openOf(scene, job, { ref: refOf(job, 'mail', 'b') }))).toBe(false)
      scene.expect(await hasOthers(openOf(scene, job, { ref: refOf(job, 'alert') })), 'a later name').toBe(true)
      scene.expect(await hasOthers(openOf(scene, job, { ref: refOf(job, 'update') })), 'an earlier name').toBe(true)
      scene.expect(await hasOthers(mail), 'of a repeat, too').toBe(true)
    },

    'nothing is opened beside what is done, seen or not': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      const first = await opened(scene, job)
      await closed(scene, first)
      expect((await ask(scene, openOf(scene, job, { seenIds: [first] }))).kind).toBe('known')
      expect(await states(scene, job.lease.jobId)).toEqual(['done'])
    },

    'what is proven absent becomes not-executed with the intent that follows it': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      const first = await opened(scene, job)
      await opened(scene, job, { seenIds: [first], absentIds: [first] })
      expect(await states(scene, job.lease.jobId)).toEqual(['not-executed', 'open'])
    },

    'an absence changes nothing where its intent is not opened': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      const first = await opened(scene, job)
      const second = await opened(scene, job, { seenIds: [first] })
      await ask(scene, openOf(scene, job, { seenIds: [second], absentIds: [second] }))
      scene.expect(await states(scene, job.lease.jobId)).toEqual(['open', 'open'])
    },

    'E21 names, items and kinds are told apart': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      const refs = [refOf(job, 'charge'), refOf(job, 'mail', 'a'), refOf(job, 'mail', 'b'), refOf(job, 'mail', 'B')]
      for (const ref of [...refs, refOf(job, 'mail', 'a', 'compensation')]) await opened(scene, job, { ref })
      for (const ref of refs) expect(await known(scene, job, ref)).toHaveLength(1)
      const { keyRef, generation } = refOf(job)
      const verdict = await ask(scene, { kind: 'names', lease: job.lease, keyRef, generation })
      expect(verdict).toEqual({ kind: 'names', names: ['charge', 'mail'], compensate: false })
    },

    'requests of one batch are applied in order': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      const first = openOf(scene, job, { ref: refOf(job, 'mail', '1') })
      const next = openOf(scene, job, { ref: refOf(job, 'mail', '2') })
      const verdicts = await scene.driver.ledger([
        first,
        closeOf(first.id),
        next,
        openOf(scene, job, { ref: first.ref }),
      ])
      scene.expect(verdicts.map(({ kind }) => kind)).toEqual(['opened', 'closed', 'opened', 'known'])
      scene.expect(await states(scene, job.lease.jobId)).toEqual(['done', 'open'])
    },

    'an empty batch is answered by none': async (scene) => {
      scene.expect(await scene.driver.ledger([])).toEqual([])
    },

    'H8 without the lease nothing is opened, remembered, recalled or named': async (scene) => {
      const { expect } = scene
      const stale = await scene.runningKeyed('order-1')
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      const { keyRef, generation } = refOf(stale)
      const requests = [
        openOf(scene, stale),
        remember(scene, stale, '1'),
        recall(stale),
        { kind: 'names', lease: stale.lease, keyRef, generation } as const,
      ]
      for (const request of requests) expect(await ask(scene, request)).toEqual({ kind: 'lost' })
      const current = await startedAgain(scene)
      for (const request of requests) expect(await ask(scene, request)).toEqual({ kind: 'lost' })
      expect(await states(scene, current.lease.jobId)).toEqual([])
    },

    'a row that was fetched and not started has no ledger yet, nor has one that waits': async (scene) => {
      const { expect } = scene
      await scene.addKeyed('order-1')
      const job = await scene.fetchOne(keyed)
      expect(await ask(scene, openOf(scene, job))).toEqual({ kind: 'lost' })
      await scene.mustStart(job.lease, keyed)
      await scene.mustSettle(job.lease, retry(), 'retried')
      expect(await ask(scene, openOf(scene, job))).toEqual({ kind: 'lost' })
    },

    'H1 the next attempt inherits what is known, and so does the next job of the key': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      await closed(scene, await opened(scene, job))
      await scene.mustSettle(job.lease, retry(), 'retried')
      const again = await startedAgain(scene)
      expect(await known(scene, again)).toMatchObject([{ state: 'done', result: '{"id":"ch_1"}' }])
      await scene.mustSettle(again.lease, bury(), 'dead')
      await scene.addKeyed('order-1')
      const next = await startedAgain(scene)
      expect(next.lease.jobId).not.toBe(job.lease.jobId)
      expect(await known(scene, next)).toMatchObject([{ state: 'done', jobId: job.lease.jobId }])
    },

    'E47 a new operation has a record of its own': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      await closed(scene, await opened(scene, job))
      await scene.mustSettle(job.lease, bury(), 'dead')
      await scene.resurrect(job.lease.jobId, { mode: 'new-operation' })
      const again = await startedAgain(scene)
      expect(again.generation).toBe(2)
      await opened(scene, again)
      expect((await scene.inspector.effects(job.lease.jobId)).map(({ generation }) => generation)).toEqual([1, 2])
    },

    // ---- outcomes

    'an outcome keeps result, failure and what the provider does with its errors': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      const failure = { name: 'Error', message: '500', code: 'E_ACME' }
      const first = await opened(scene, job)
      await closed(scene, first, { state: 'ambiguous', result: null, failure, replayed: true })
      expect(await known(scene, job)).toMatchObject([{ state: 'ambiguous', failure, replayed: true, result: null }])
      const [record] = await scene.inspector.effects(job.lease.jobId)
      expect(record).toMatchObject({ provider: 'acme', name: 'charge', item: '', kind: 'effect', generation: 1 })
      expect(record?.closedAtMs).not.toBe(null)
    },

    'E31 null is a result, and so is none': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      for (const [item, result] of [
        ['a', 'null'],
        ['b', null],
        ['c', '""'],
        ['d', '0'],
        ['e', 'false'],
      ] as const) {
        await closed(scene, await opened(scene, job, { ref: refOf(job, 'mail', item) }), { result })
        expect(await known(scene, job, refOf(job, 'mail', item))).toMatchObject([{ state: 'done', result }])
      }
    },

    'E5 a late outcome is evidence, whoever holds the lease by then': async (scene) => {
      const { expect } = scene
      const stale = await scene.runningKeyed('order-1')
      const id = await opened(scene, stale)
      await scene.driver.rescue({ deadWorkerIds: ['worker-1'], limit: 10 })
      const current = await startedAgain(scene)
      await closed(scene, id)
      expect(await known(scene, current)).toMatchObject([{ id, state: 'done' }])
    },

    'done is final; everything else gives way to it': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      for (const state of ['ambiguous', 'not-executed', 'terminal'] as const) {
        const id = await opened(scene, job, { ref: refOf(job, state) })
        await closed(scene, id, { state, result: null })
        await closed(scene, id)
        await closed(scene, id, { state, result: null })
        expect(await known(scene, job, refOf(job, state))).toMatchObject([{ state: 'done', result: '{"id":"ch_1"}' }])
      }
    },

    'what is closed is closed: only done comes after it': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      const id = await opened(scene, job)
      await closed(scene, id, { state: 'not-executed', result: null })
      await closed(scene, id, { state: 'ambiguous', result: null })
      scene.expect(await states(scene, job.lease.jobId)).toEqual(['not-executed'])
    },

    'an outcome of an intent that is nowhere is no error': async (scene) => {
      scene.expect(await ask(scene, closeOf(scene.runtime.newId()))).toEqual({ kind: 'closed', double: false })
    },

    'an outcome ends its siblings under the same provider key': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      const first = await opened(scene, job)
      const other = await opened(scene, job, { seenIds: [first], providerKey: 'key-2' })
      const last = await opened(scene, job, { seenIds: [first, other] })
      await opened(scene, job, { ref: refOf(job, 'mail') })
      await closed(scene, last)
      expect(await states(scene, job.lease.jobId)).toEqual(['superseded', 'open', 'done', 'open'])
    },

    'what reconcile found ends all its siblings': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      const first = await opened(scene, job, { providerKey: null })
      const last = await opened(scene, job, { seenIds: [first], providerKey: null })
      await closed(scene, last, { supersedes: 'all' })
      expect(await states(scene, job.lease.jobId)).toEqual(['superseded', 'done'])
    },

    'calls without a provider key are never the same': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      const first = await opened(scene, job, { providerKey: null })
      const last = await opened(scene, job, { seenIds: [first], providerKey: null })
      await closed(scene, last)
      scene.expect(await states(scene, job.lease.jobId)).toEqual(['open', 'done'])
    },

    'two that are done are told, unless the provider took them for one': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      for (const [name, keys, double] of [
        ['same', ['k', 'k'], false],
        ['other', ['k', 'l'], true],
        ['none', [null, null], true],
        ['half', [null, 'k'], true],
      ] as const) {
        const ref = refOf(job, name)
        const first = await opened(scene, job, { ref, providerKey: keys[0] })
        const last = await opened(scene, job, { ref, providerKey: keys[1], seenIds: [first] })
        await closed(scene, last, { supersedes: 'none' })
        expect([name, await ask(scene, closeOf(first, { supersedes: 'none' }))]).toEqual([
          name,
          { kind: 'closed', double },
        ])
      }
    },

    // ---- memos

    'a memo is remembered once: what came first stands': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      expect(await ask(scene, recall(job))).toEqual({ kind: 'recalled', found: false, result: null })
      expect(await ask(scene, remember(scene, job, '1'))).toEqual({ kind: 'remembered', result: '1' })
      expect(await ask(scene, remember(scene, job, '2'))).toEqual({ kind: 'remembered', result: '1' })
      expect(await ask(scene, recall(job))).toEqual({ kind: 'recalled', found: true, result: '1' })
    },

    'a memo of nothing is found': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      await ask(scene, remember(scene, job, null))
      scene.expect(await ask(scene, recall(job))).toEqual({ kind: 'recalled', found: true, result: null })
    },

    'a job without a key has memos, too, over its attempts': async (scene) => {
      const { expect } = scene
      const job = await scene.running()
      await ask(scene, remember(scene, job, '"x"'))
      await scene.mustSettle(job.lease, retry(), 'retried')
      const again = await startedAgain(scene, plain)
      expect(await ask(scene, recall(again))).toEqual({ kind: 'recalled', found: true, result: '"x"' })
      expect(await scene.inspector.effects(job.lease.jobId)).toMatchObject([
        { kind: 'memo', name: 'rate', state: 'done' },
      ])
    },

    'two connections that remember at once agree': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      const other = await scene.second()
      const verdicts = await scene.together(
        ask(scene, remember(scene, job, '"a"')),
        ask(scene, remember(scene, job, '"b"'), other),
      )
      const results = verdicts.map((verdict) => (verdict.kind === 'remembered' ? verdict.result : verdict.kind))
      scene.expect(new Set(results).size).toBe(1)
    },

    'two connections that open at once are one call': async (scene) => {
      const job = await scene.runningKeyed('order-1')
      const other = await scene.second()
      const verdicts = await scene.together(ask(scene, openOf(scene, job)), ask(scene, openOf(scene, job), other))
      scene.expect(verdicts.map(({ kind }) => kind).sort()).toEqual(['known', 'opened'])
    },

    // ---- who looks

    'the record of a job is that of its key, oldest first; an unknown job has none': async (scene) => {
      const { expect } = scene
      const job = await scene.runningKeyed('order-1')
      await closed(scene, await opened(scene, job))
      await scene.elapse(second)
      await closed(scene, await opened(scene, job, { ref: refOf(job, 'mail', 'x') }))
      await scene.mustSettle(job.lease, complete({ guard: true }), 'completed')
      const records = await scene.inspector.effects(job.lease.jobId)
      expect(records.map(({ name, item }) => [name, item])).toEqual([
        ['charge', ''],
        ['mail', 'x'],
      ])
      expect(present(records[1], 'a record').openedAtMs).toBeGreaterThan(present(records[0], 'a record').openedAtMs)
      expect(await scene.inspector.effects(scene.runtime.newId())).toEqual([])
    },
  },
}
