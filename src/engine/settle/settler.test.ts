import { describe, expect, test } from 'vitest'
import { workerDefaults } from '../../core/config.ts'
import { ChokaQError } from '../../core/errors.ts'
import { EventBus, type ChokaQEvent } from '../../core/events.ts'
import type { FetchedJob } from '../../core/job.ts'
import type { SettleAction, Settlement, SettleOutcome, SettleVerdict, StorageDriver } from '../../core/storage.ts'
import { createFakeRuntime } from '../../testing/fake-runtime.ts'
import { claimOutcome, Settler } from './settler.ts'

const failure = { name: 'Error', message: 'no' }
const job = { lease: { jobId: 'j', token: 7 }, type: 't.v1', queue: 'q' } as FetchedJob
const context = { job, workerId: 'w', attempt: 2, keyed: true, durationMs: 5, why: 'paused' }
const of = { jobId: 'j', type: 't.v1', queue: 'q', workerId: 'w', attempt: 2 }

const complete: SettleAction = { kind: 'complete', result: '1', markerLifeMs: 1, keep: { kind: 'full' }, children: [] }
const retry: SettleAction = { kind: 'retry', delayMs: 3, failure, charge: 'failure', reason: 'failed' }
const bury: SettleAction = { kind: 'bury', reason: 'FatalError', failure, hold: false }
const hold: SettleAction = { kind: 'bury', reason: 'Interrupted', failure, hold: true }
const skip: SettleAction = { kind: 'skip', duplicateOf: 'other', holder: 'completed', result: null }
const settled = (outcome: SettleOutcome, repeated = false): SettleVerdict => ({ kind: 'settled', outcome, repeated })

function settlerOf(answer: (settlements: readonly Settlement[], call: number) => Promise<readonly SettleVerdict[]>) {
  const runtime = createFakeRuntime()
  const events = new EventBus()
  const heard: ChokaQEvent[] = []
  events.subscribe((event) => void heard.push(event))
  const calls: (readonly Settlement[])[] = []
  const driver = {
    settle(settlements: readonly Settlement[]) {
      calls.push(settlements)
      return answer(settlements, calls.length)
    },
  } as Partial<StorageDriver> as StorageDriver
  const config = { ...workerDefaults, prefetch: 20, waive: {} }
  const settler = new Settler({ driver, runtime, events, config, stop: () => false })
  return { settler, heard, calls, runtime }
}

const told: readonly { action: SettleAction; outcome: SettleOutcome; event: object; claim: string | undefined }[] = [
  {
    action: complete,
    outcome: 'completed',
    event: { name: 'job.completed', durationMs: 5, repeated: false },
    claim: 'completed',
  },
  {
    action: complete,
    outcome: 'conflict',
    event: { name: 'job.dead', reason: 'CompleteConflict' },
    claim: 'complete_conflict',
  },
  {
    action: retry,
    outcome: 'retried',
    event: { name: 'job.retried', delayMs: 3, reason: 'failed', failure },
    claim: undefined,
  },
  { action: retry, outcome: 'cancelled', event: { name: 'job.cancelled' }, claim: 'released' },
  {
    action: bury,
    outcome: 'dead',
    event: { name: 'job.dead', reason: 'FatalError', hold: false, failure },
    claim: 'released',
  },
  { action: hold, outcome: 'dead', event: { name: 'job.dead', reason: 'Interrupted', hold: true }, claim: undefined },
  {
    action: skip,
    outcome: 'skipped',
    event: { name: 'job.skipped', duplicateOf: 'other', holder: 'completed' },
    claim: 'completed_duplicate',
  },
  {
    action: { kind: 'defer', delayMs: 9 },
    outcome: 'deferred',
    event: { name: 'job.deferred', delayMs: 9 },
    claim: 'in_progress_duplicate',
  },
  {
    action: { kind: 'cancel', hold: false },
    outcome: 'cancelled',
    event: { name: 'job.cancelled' },
    claim: 'released',
  },
  {
    action: { kind: 'release' },
    outcome: 'released',
    event: { name: 'job.released', why: 'paused' },
    claim: undefined,
  },
]

describe('Settler', () => {
  test.each(told)('tells of $action.kind that ended as $outcome', async ({ action, outcome, event, claim }) => {
    const { settler, heard } = settlerOf(() => Promise.resolve([settled(outcome)]))
    await settler.settle(action, context)
    expect(heard.filter(({ name }) => name !== 'idempotency.claim')).toEqual([
      expect.objectContaining({ ...of, ...event }),
    ])
    const claims = heard.filter(({ name }) => name === 'idempotency.claim')
    expect(claims).toEqual(
      claim === undefined ? [] : [{ name: 'idempotency.claim', outcome: claim, jobId: 'j', type: 't.v1', queue: 'q' }],
    )
  })

  test('counts no claim of a job without a key', async () => {
    const { settler, heard } = settlerOf(() => Promise.resolve([settled('completed')]))
    await settler.settle(complete, { ...context, keyed: false })
    expect(heard.map(({ name }) => name)).toEqual(['job.completed'])
  })

  test('tells of a lost lease, and of nothing else', async () => {
    const { settler, heard } = settlerOf(() => Promise.resolve([{ kind: 'lost' }]))
    expect(await settler.settle(complete, context)).toEqual({ kind: 'lost' })
    expect(heard).toEqual([{ name: 'job.lease_lost', ...of, at: 'settle' }])
  })

  test('settles of one tick share a call, and each gets its own verdict', async () => {
    const { settler, calls } = settlerOf(() => Promise.resolve([settled('completed'), { kind: 'lost' }]))
    const other = { ...context, job: { ...job, lease: { jobId: 'k', token: 8 } } }
    const verdicts = await Promise.all([settler.settle(complete, context), settler.settle(retry, other)])
    expect(verdicts.map(({ kind }) => kind)).toEqual(['settled', 'lost'])
    expect(calls.map((call) => call.map(({ lease }) => lease.jobId))).toEqual([['j', 'k']])
  })

  test('a refused result is left out, and the job completed all the same', async () => {
    const refused: SettleVerdict = { kind: 'refused', error: new Error('too odd') }
    const { settler, calls } = settlerOf((_s, call) => Promise.resolve([call === 1 ? refused : settled('completed')]))
    await settler.settle(complete, context)
    expect(calls.map(([settlement]) => settlement?.action)).toMatchObject([
      { result: '1' },
      { kind: 'complete', result: null },
    ])
  })

  test('a refused failure is told in plain words', async () => {
    const refused: SettleVerdict = { kind: 'refused', error: new Error('too odd') }
    const { settler, calls } = settlerOf((_s, call) => Promise.resolve([call === 1 ? refused : settled('retried')]))
    await settler.settle(retry, context)
    expect(calls[1]?.[0]?.action).toMatchObject({
      kind: 'retry',
      delayMs: 3,
      failure: { code: 'CHOKAQ_STORAGE_FAILED' },
    })
  })

  test('what is refused even so goes to a person', async () => {
    const refused: SettleVerdict = { kind: 'refused', error: new Error('a bad child') }
    const { settler, calls, heard } = settlerOf((_s, call) => Promise.resolve([call < 3 ? refused : settled('dead')]))
    await settler.settle(complete, context)
    expect(calls[2]?.[0]?.action).toMatchObject({ kind: 'bury', reason: 'ReviewRequested', hold: true })
    expect(heard.at(-1)).toMatchObject({ name: 'job.dead', reason: 'ReviewRequested' })
  })

  test('what is refused for ever is an error, not a silence', async () => {
    const error = new RangeError('never')
    const { settler } = settlerOf(() => Promise.resolve([{ kind: 'refused', error }]))
    await expect(settler.settle(complete, context)).rejects.toBe(error)
  })

  test('offers an outcome again after a transient failure', async () => {
    const failed = new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem: 'cut' })
    const { settler, calls, runtime } = settlerOf((_s, call) =>
      call < 3 ? Promise.reject(failed) : Promise.resolve([settled('completed', true)]),
    )
    expect(await runtime.complete(settler.settle(complete, context))).toMatchObject({ repeated: true })
    expect(calls).toHaveLength(3)
  })
})

test('an empty key is a claim outcome of its own', () => {
  expect(claimOutcome({ kind: 'bury', reason: 'EmptyKey', failure: null, hold: false }, 'dead')).toBe('empty_key')
})
