import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { workerDefaults } from '../../core/config.ts'
import { defineJob } from '../../core/contract.ts'
import { EventBus } from '../../core/events.ts'
import { defineHandler, handlerOf } from '../../core/handler.ts'
import type { FetchedJob } from '../../core/job.ts'
import type { ClaimVerdict, HolderState, StartVerdict, StorageDriver } from '../../core/storage.ts'
import { policy } from '../../testing/conformance/new-job.ts'
import { createFakeRuntime } from '../../testing/fake-runtime.ts'
import { Gate, type GateResult } from './gate.ts'

const contract = defineJob({
  type: 'raw.v1',
  payload: z.object({ key: z.string() }),
  key: (p) => p.key,
  duplicateWindow: '1d',
  allowRaw: true,
})
const answers = { sideEffects: 'unique-constraint', whenInterrupted: 'resume' } as const
const run = async (): Promise<void> => undefined
const skipping = handlerOf(defineHandler(contract, { ...answers, run }))
const deferring = handlerOf(defineHandler(contract, { ...answers, onDuplicate: 'defer', run }))
const keyed = policy({ type: 'raw.v1', keyed: true, fastStart: true })

const key = { hash: 'f'.repeat(64), prefix: 'k', scope: 'raw' }
const fetched: FetchedJob = {
  lease: { jobId: 'j', token: 7 },
  state: 'fetched',
  type: 'raw.v1',
  queue: 'default',
  payload: '{"key":"k"}',
  priority: 0,
  tags: [],
  tenant: undefined,
  key,
  fingerprint: 'f',
  generation: 1,
  attempt: 0,
  failureCount: 0,
  crashCount: 0,
  suspect: false,
  createdAtMs: 0,
  runAtMs: 0,
  firstStartedAtMs: undefined,
  traceContext: undefined,
}
const raw: FetchedJob = { ...fetched, key: undefined, fingerprint: undefined }
const started: StartVerdict = { kind: 'started', attempt: 3, startedAtMs: 9, firstStartedAtMs: 4 }

function gateOf(start: StartVerdict = started, claim: ClaimVerdict = { kind: 'claimed' }) {
  const runtime = createFakeRuntime()
  const calls: string[] = []
  const driver = {
    claim(requests: readonly unknown[]) {
      calls.push('claim')
      return Promise.resolve(requests.map(() => claim))
    },
    start(requests: readonly unknown[]) {
      calls.push('start')
      return Promise.resolve(requests.map(() => start))
    },
  } as Partial<StorageDriver> as StorageDriver
  const config = { ...workerDefaults, prefetch: 20, waive: {} }
  const gate = new Gate({ driver, runtime, events: new EventBus(), config, stop: () => false })
  return { gate, calls }
}

const action = (result: GateResult): unknown => (result.kind === 'settle' ? result.action : result.kind)

describe('Gate', () => {
  test('starts a job whose key stands, and asks for no claim', async () => {
    const { gate, calls } = gateOf()
    expect(await gate.pass(fetched, skipping, keyed)).toMatchObject({
      kind: 'run',
      payload: { key: 'k' },
      keyHash: key.hash,
      attempt: 3,
      firstStartedAtMs: 4,
    })
    expect(calls).toEqual(['start'])
  })

  test('claims first and starts afterwards where the worker computes the key', async () => {
    const { gate, calls } = gateOf()
    const result = await gate.pass(raw, skipping, keyed)
    expect(calls).toEqual(['claim', 'start'])
    expect(result).toMatchObject({ kind: 'run', keyHash: expect.stringMatching(/^[0-9a-f]{64}$/) as string })
  })

  test('asks nothing more of a job that the fetch has started', async () => {
    const { gate, calls } = gateOf()
    const job: FetchedJob = { ...fetched, state: 'processing', attempt: 1, firstStartedAtMs: 2 }
    expect(await gate.pass(job, skipping, keyed)).toMatchObject({ kind: 'run', attempt: 1, firstStartedAtMs: 2 })
    expect(calls).toEqual([])
  })

  test('starts a suspect before its payload is read: the schema may be what took the last worker down', async () => {
    const { gate, calls } = gateOf()
    const job: FetchedJob = { ...fetched, suspect: true, payload: '{' }
    expect(action(await gate.pass(job, skipping, keyed))).toMatchObject({ kind: 'bury', reason: 'Rejected' })
    expect(calls).toEqual(['start'])
  })

  const holders: readonly { holder: HolderState; skips: boolean }[] = [
    { holder: 'completed', skips: true },
    { holder: 'failed', skips: true },
    { holder: 'compensated', skips: true },
    { holder: 'in-progress', skips: false },
    { holder: 'in-review', skips: false },
  ]

  test.each(holders)('a duplicate of one that is $holder', async ({ holder, skips }) => {
    const { gate } = gateOf({ kind: 'duplicate', jobId: 'other', holder, result: '1', sameFingerprint: true })
    const skip = { kind: 'skip', duplicateOf: 'other', holder, result: '1' }
    expect(action(await gate.pass(fetched, skipping, keyed))).toEqual(skip)
    expect(action(await gate.pass(fetched, deferring, keyed))).toEqual(skips ? skip : { kind: 'defer', delayMs: 5_000 })
  })

  test('a held key: skip, defer, or KeyReused', async () => {
    const held: ClaimVerdict = { kind: 'held', jobId: 'other', sameFingerprint: true }
    const { gate, calls } = gateOf(started, held)
    expect(action(await gate.pass(raw, skipping, keyed))).toMatchObject({ kind: 'skip', holder: 'in-progress' })
    expect(action(await gate.pass(raw, deferring, keyed))).toMatchObject({ kind: 'defer' })
    const other = gateOf(started, { ...held, sameFingerprint: false })
    expect(action(await other.gate.pass(raw, skipping, keyed))).toMatchObject({ kind: 'bury', reason: 'KeyReused' })
    expect(calls).not.toContain('start')
  })

  test.each<[StartVerdict, object | string]>([
    [{ kind: 'paused' }, { kind: 'release' }],
    [{ kind: 'cancelled' }, { kind: 'cancel', hold: false }],
    [{ kind: 'expired' }, { kind: 'bury', reason: 'RetryLifetimeExpired', hold: false }],
    [{ kind: 'lost' }, 'lost'],
    [
      { kind: 'duplicate', jobId: 'o', holder: 'completed', result: null, sameFingerprint: false },
      { kind: 'bury', reason: 'KeyReused' },
    ],
  ])('a start that answers %j', async (verdict, wanted) => {
    const result = action(await gateOf(verdict).gate.pass(fetched, skipping, keyed))
    if (typeof wanted === 'string') expect(result).toBe(wanted)
    else expect(result).toMatchObject(wanted)
  })

  test.each([
    ['{', 'Rejected'],
    ['{"key":7}', 'Rejected'],
    ['{"key":""}', 'EmptyKey'],
    ['{"key":"undefined"}', 'EmptyKey'],
  ])('a payload %s is refused as %s, and starts nothing', async (payload, reason) => {
    const { gate, calls } = gateOf()
    expect(action(await gate.pass({ ...raw, payload }, skipping, keyed))).toMatchObject({
      kind: 'bury',
      reason,
      hold: false,
    })
    expect(calls).toEqual([])
  })
})
