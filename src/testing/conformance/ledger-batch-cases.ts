/** Batches of the ledger: many requests, requests that meet, stale and refused ones among good ones. */
import type { FetchedJob } from '../../core/job.ts'
import type { LedgerRequest, LedgerVerdict } from '../../core/ledger.ts'
import type { CaseGroup } from './cases.ts'
import { ask, closed, closeOf, known, opened, openOf, type OpenRequest, refOf, states } from './ledger-steps.ts'
import { keyedJob, minute } from './new-job.ts'
import { keyed, present, type Scene } from './scene.ts'

/** Keyed jobs order-0, order-1, … that run. */
async function runningMany(scene: Scene, count: number): Promise<readonly FetchedJob[]> {
  await scene.insert(...Array.from({ length: count }, (_, n) => keyedJob(scene.runtime, `order-${n}`)))
  const jobs = await scene.fetch([keyed], { limit: count })
  scene.expect(jobs).toHaveLength(count)
  await scene.driver.start(jobs.map(({ lease }) => ({ lease, policy: keyed })))
  return jobs
}

function namesOf({ lease, generation, key }: FetchedJob): LedgerRequest {
  return { kind: 'names', lease, keyRef: key?.hash ?? '', generation }
}

function memo(scene: Scene, job: FetchedJob, result: string): LedgerRequest {
  const { runtime } = scene
  const ref = refOf(job, 'rate', '', 'memo')
  return {
    kind: 'remember',
    lease: job.lease,
    ref,
    id: runtime.newId(),
    result,
    workerId: 'w',
    attempt: 1,
    keepMs: minute,
  }
}

/** No database keeps an attempt that never began. */
const refusedContent: Partial<OpenRequest> = { attempt: 0 }

function kinds(verdicts: readonly LedgerVerdict[]): readonly string[] {
  return verdicts.map((verdict) => (verdict.kind === 'closed' && verdict.double ? 'double' : verdict.kind))
}

export const ledgerBatchCases: CaseGroup = {
  title: 'ledger: batches',
  cases: {
    'many intents and outcomes in one batch, each with its own verdict': async (scene) => {
      const { driver, expect } = scene
      const jobs = await runningMany(scene, 60)
      const intents = jobs.map((job) => openOf(scene, job))
      const first = await driver.ledger(
        jobs.slice(0, 30).flatMap((job, n) => [namesOf(job), present(intents[n], 'one')]),
      )
      expect(first).toEqual(
        jobs.slice(0, 30).flatMap(() => [
          { kind: 'names', names: [], compensate: false },
          { kind: 'opened', firstAgeMs: 0, hasOthers: false },
        ]),
      )
      const outcomes = intents.slice(0, 30).map(({ id }, n) => closeOf(id, n % 2 === 0 ? {} : { state: 'ambiguous' }))
      const second = await driver.ledger([...outcomes, ...intents.slice(30)])
      expect(kinds(second)).toEqual([...outcomes.map(() => 'closed'), ...intents.slice(30).map(() => 'opened')])
      const found = await Promise.all(jobs.map(({ lease }) => states(scene, lease.jobId)))
      expect(found).toEqual(jobs.map((_, n) => [n >= 30 ? 'open' : n % 2 === 0 ? 'done' : 'ambiguous']))
      expect(await driver.ledger([])).toEqual([])
    },

    'requests that meet at one effect have the verdicts of one after the other': async (scene) => {
      const { driver, expect } = scene
      const job = await scene.runningKeyed('order-1')
      const first = openOf(scene, job, { providerKey: 'key-1' })
      const second = openOf(scene, job, { providerKey: 'key-2', seenIds: [first.id] })
      const verdicts = await driver.ledger([
        closeOf(first.id),
        namesOf(job),
        first,
        namesOf(job),
        openOf(scene, job),
        closeOf(first.id, { state: 'ambiguous', result: null }),
        second,
        closeOf(second.id),
        openOf(scene, job, { seenIds: [first.id, second.id] }),
        closeOf(first.id),
        memo(scene, job, '1'),
        memo(scene, job, '2'),
        { kind: 'recall', lease: job.lease, ref: refOf(job, 'rate', '', 'memo') },
        first,
      ])
      expect(kinds(verdicts)).toEqual([
        'closed',
        'names',
        'opened',
        'names',
        'known',
        'closed',
        'opened',
        'closed',
        'known',
        'double',
        'remembered',
        'remembered',
        'recalled',
        'opened',
      ])
      expect(verdicts[1]).toMatchObject({ names: [] })
      expect(verdicts[3]).toMatchObject({ names: ['charge'] })
      expect(verdicts[4]).toMatchObject({ intents: [{ id: first.id, state: 'open' }] })
      expect(verdicts[8]).toMatchObject({
        intents: [
          { id: first.id, state: 'ambiguous' },
          { id: second.id, state: 'done' },
        ],
      })
      expect(verdicts[11]).toMatchObject({ result: '1' })
      expect(verdicts[12]).toMatchObject({ found: true, result: '1' })
    },

    'an outcome ends its siblings under the same key in the batch that opened them': async (scene) => {
      const { driver, expect } = scene
      const job = await scene.runningKeyed('order-1')
      const first = await opened(scene, job)
      const again = openOf(scene, job, { seenIds: [first] })
      expect(kinds(await driver.ledger([again, closeOf(again.id)]))).toEqual(['opened', 'closed'])
      expect(await states(scene, job.lease.jobId)).toEqual(['superseded', 'done'])
    },

    'an intent that was proven absent ends with the one that follows, among others': async (scene) => {
      const { driver, expect } = scene
      const [one, other] = await runningMany(scene, 2)
      const job = present(one, 'a job')
      const absent = await opened(scene, job)
      const next = openOf(scene, job, { seenIds: [absent], absentIds: [absent] })
      const verdicts = await driver.ledger([openOf(scene, present(other, 'another')), next])
      expect(kinds(verdicts)).toEqual(['opened', 'opened'])
      expect(await states(scene, job.lease.jobId)).toEqual(['not-executed', 'open'])
    },

    'the same intent and the same outcome twice in a batch are one': async (scene) => {
      const { driver, expect } = scene
      const job = await scene.runningKeyed('order-1')
      const request = openOf(scene, job)
      const verdicts = await driver.ledger([request, request, closeOf(request.id), closeOf(request.id)])
      expect(kinds(verdicts)).toEqual(['opened', 'opened', 'closed', 'closed'])
      expect(await states(scene, job.lease.jobId)).toEqual(['done'])
    },

    'a stale lease among good ones costs only itself': async (scene) => {
      const { driver, expect } = scene
      const jobs = await runningMany(scene, 5)
      const requests = jobs.map((job, n) =>
        openOf(scene, job, n === 2 ? { lease: { ...job.lease, token: job.lease.token + 1_000 } } : {}),
      )
      expect(kinds(await driver.ledger(requests))).toEqual(['opened', 'opened', 'lost', 'opened', 'opened'])
      const found = await Promise.all(jobs.map(({ lease }) => states(scene, lease.jobId)))
      expect(found).toEqual([['open'], ['open'], [], ['open'], ['open']])
    },

    'leases of one batch never meet crosswise': async (scene) => {
      const { driver, expect } = scene
      const [one, other] = await runningMany(scene, 2)
      const [a, b] = [present(one, 'a job'), present(other, 'another')]
      const crossed = [
        openOf(scene, a, { lease: { jobId: a.lease.jobId, token: b.lease.token } }),
        openOf(scene, b, { lease: { jobId: b.lease.jobId, token: a.lease.token } }),
      ]
      expect(kinds(await driver.ledger(crossed))).toEqual(['lost', 'lost'])
    },

    'a request that the database refuses among good ones costs only itself': async (scene) => {
      const { driver, expect } = scene
      const jobs = await runningMany(scene, 9)
      const before = await opened(scene, present(jobs[8], 'a job'))
      const requests = jobs.slice(0, 8).map((job, n) => openOf(scene, job, n === 5 ? refusedContent : {}))
      const verdicts = await driver.ledger([...requests, closeOf(before)])
      expect(kinds(verdicts)).toEqual([
        'opened',
        'opened',
        'opened',
        'opened',
        'opened',
        'refused',
        'opened',
        'opened',
        'closed',
      ])
      expect(verdicts[5]).toMatchObject({ error: { code: 'CHOKAQ_STORAGE_FAILED' } })
      const found = await Promise.all(jobs.map(({ lease }) => states(scene, lease.jobId)))
      expect(found).toEqual(jobs.map((_, n) => (n === 5 ? [] : n === 8 ? ['done'] : ['open'])))
      expect((await ask(scene, openOf(scene, present(jobs[5], 'it')))).kind, 'nothing of it is left').toBe('opened')
    },

    'two outcomes that say done in one batch are a double, told to the second': async (scene) => {
      const { driver, expect } = scene
      const job = await scene.runningKeyed('order-1')
      const first = await opened(scene, job, { providerKey: null })
      await closed(scene, first, { state: 'ambiguous', result: null })
      const second = await opened(scene, job, { providerKey: null, seenIds: [first] })
      const verdicts = await driver.ledger([closeOf(first), closeOf(second)])
      expect(kinds(verdicts)).toEqual(['closed', 'double'])
      expect((await known(scene, job)).map(({ state }) => state)).toEqual(['done', 'done'])
    },
  },
}
