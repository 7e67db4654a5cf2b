import { describe, expect, it } from 'vitest'
import { afterReconcile, firstStep, keyStillSafe, readIntents, settleAfterMs, windowMarginMs } from './doubt.ts'
import { defineEffect, effectOf, type EffectDefinition, type ResolvedEffect } from './effect.ts'
import { ChokaQError } from './errors.ts'
import { intentStates, type Intent, type IntentState } from './ledger.ts'
import { defineProvider, noKey } from './provider.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const bounds = { fenceAfterMs: 20 * second, deadAfterMs: 30 * second, sweepMs: 5 * second }

/** W = 1 h, Tp = 10 s. */
const acme = defineProvider({
  name: 'acme',
  keyFormat: { maxLength: 64 },
  dedupeWindow: '1h',
  onProviderError: 'replayed',
  callTimeout: '10s',
})
const forever = defineProvider({
  name: 'tiger',
  keyFormat: { maxLength: 64 },
  dedupeWindow: 'forever',
  onProviderError: 'reexecuted',
  callTimeout: '10s',
})
const keyless = noKey('ses', { callTimeout: '10s' })

type Change = Partial<EffectDefinition<unknown, unknown>>

function effect(change: Change = {}): ResolvedEffect {
  const resolved = effectOf(defineEffect({ name: 'charge', provider: acme, run: async () => undefined, ...change }))
  if (resolved === undefined) throw new ChokaQError('CHOKAQ_ASSERTION', { what: 'an effect' })
  return resolved
}

function intent(state: IntentState, change: Partial<Intent> = {}): Intent {
  return {
    id: 'i1',
    state,
    fingerprint: 'f',
    input: '{}',
    result: null,
    failure: null,
    ageMs: 0,
    jobId: 'j',
    workerId: 'w',
    attempt: 1,
    providerKey: 'k',
    replayed: false,
    ownerGone: false,
    ...change,
  }
}

describe('readIntents', () => {
  it.each<[readonly IntentState[], string]>([
    [[], 'clear'],
    [['not-executed'], 'clear'],
    [['superseded'], 'clear'],
    [['abandoned'], 'clear'],
    [['open'], 'doubt'],
    [['ambiguous'], 'doubt'],
    [['not-executed', 'open'], 'doubt'],
    [['done'], 'done'],
    [['open', 'done'], 'done'],
    [['done', 'terminal'], 'done'],
    [['terminal'], 'terminal'],
    [['terminal', 'not-executed'], 'terminal'],
    [['terminal', 'open'], 'doubt'],
    [['terminal', 'ambiguous'], 'doubt'],
  ])('of %j is %s', (states, kind) => {
    expect(readIntents(states.map((state) => intent(state))).kind).toBe(kind)
  })

  it('gives the first that is done, and all that are in doubt', () => {
    const rows = intentStates.map((state) => intent(state, { id: state }))
    expect(readIntents(rows)).toMatchObject({ kind: 'done', intent: { id: 'done' } })
    const known = readIntents(rows.filter(({ state }) => state !== 'done'))
    expect(known.kind === 'doubt' && known.intents.map(({ id }) => id)).toEqual(['open', 'ambiguous'])
  })
})

describe('the window of a provider key', () => {
  const marginMs = 10 * second + 20 * second + 36 * second

  it('has the margin m = Tp + F + 1 % of W', () => {
    expect(windowMarginMs(effect(), bounds)).toBe(marginMs)
    expect(windowMarginMs(effect({ callTimeout: '1m' }), bounds)).toBe(marginMs + 50 * second)
    expect(windowMarginMs(effect({ provider: forever }), bounds)).toBe(30 * second)
    expect(windowMarginMs(effect({ provider: keyless }), bounds)).toBe(30 * second)
  })

  it.each<[string, ResolvedEffect, number, boolean]>([
    ['at once', effect(), 0, true],
    ['before W − m', effect(), hour - marginMs - 1, true],
    ['exactly at W − m', effect(), hour - marginMs, true],
    ['just after W − m', effect(), hour - marginMs + 1, false],
    ['within W, but inside the margin', effect(), hour - 1, false],
    ['after W', effect(), 2 * hour, false],
    ['after a year of a provider that never forgets', effect({ provider: forever }), 9_000 * hour, true],
    ['at once without keys', effect({ provider: keyless }), 0, false],
    ['where the margin is longer than the window', effect({ callTimeout: '2h' }), 0, false],
    ['by a clock that gives no number', effect(), Number.NaN, false],
  ])('%s', (_name, of, ageMs, safe) => {
    expect(keyStillSafe(of, ageMs, bounds)).toBe(safe)
  })
})

describe('firstStep', () => {
  const reconcile = async () => 'unknown' as const
  const old = 2 * hour
  it.each<[string, Change, Partial<Intent>, number, string]>([
    ['key safe', {}, {}, 0, 'repeat'],
    ['key safe, and a reconcile', { reconcile }, {}, 0, 'repeat'],
    ['key too old', {}, {}, old, 'review'],
    ['key too old, and a reconcile', { reconcile }, {}, old, 'reconcile'],
    ['its answer is a replayed error', {}, { replayed: true }, 0, 'review'],
    ['its answer is a replayed error, and a reconcile', { reconcile }, { replayed: true }, 0, 'reconcile'],
    ['no key', { provider: keyless }, {}, 0, 'review'],
    ['no key, and a reconcile', { provider: keyless, reconcile }, {}, 0, 'reconcile'],
  ])('%s', (_name, change, of, ageMs, step) => {
    expect(firstStep(effect(change), [intent('open', of)], ageMs, bounds)).toBe(step)
  })

  it('looks at every intent in doubt for a replayed error', () => {
    const doubt = [intent('ambiguous'), intent('ambiguous', { replayed: true })]
    expect(firstStep(effect(), doubt, 0, bounds)).toBe('review')
  })
})

describe('afterReconcile', () => {
  const settleMs = 10 * second + 30 * second + 5 * second
  const at = (ageMs: number, change: Partial<Intent> = {}, state: IntentState = 'open') => [
    intent(state, { ageMs, ...change }),
  ]

  it('believes an absence after settleAfter, by default Tp + D + S', () => {
    expect(settleAfterMs(effect(), bounds)).toBe(settleMs)
    expect(settleAfterMs(effect({ settleAfter: '3m' }), bounds)).toBe(3 * minute)
  })

  it.each<[string, 'absent' | 'unknown', Change, readonly Intent[], object]>([
    ['absent, too young', 'absent', {}, at(settleMs - 1), { kind: 'wait', delayMs: 1 }],
    ['absent, seen at once', 'absent', {}, at(0), { kind: 'wait', delayMs: settleMs }],
    ['absent, exactly old enough', 'absent', {}, at(settleMs), { kind: 'repeat' }],
    ['absent, settleAfter set', 'absent', { settleAfter: '3m' }, at(2 * minute), { kind: 'wait', delayMs: minute }],
    [
      'absent, the youngest call counts',
      'absent',
      {},
      [...at(hour), ...at(settleMs - 5)],
      { kind: 'wait', delayMs: 5 },
    ],
    ['unknown, waits at least five seconds', 'unknown', {}, at(second), { kind: 'wait', delayMs: 5 * second }],
    ['unknown, waits longer and longer', 'unknown', {}, at(minute), { kind: 'wait', delayMs: minute }],
    ['unknown, waits at most five minutes', 'unknown', {}, at(30 * minute), { kind: 'wait', delayMs: 5 * minute }],
    ['unknown, until reconcileFor', 'unknown', {}, at(hour + settleMs), { kind: 'wait', delayMs: 5 * minute }],
    ['unknown, after reconcileFor', 'unknown', {}, at(hour + settleMs + 1), { kind: 'review' }],
    [
      'unknown, reconcileFor set',
      'unknown',
      { reconcileFor: '10s' },
      at(10 * second + settleMs + 1),
      { kind: 'review' },
    ],
    ['unknown, the oldest call counts', 'unknown', {}, [...at(2 * hour), ...at(0)], { kind: 'review' }],
  ])('%s', (_name, found, change, doubt, next) => {
    expect(afterReconcile(found, effect(change), doubt, bounds)).toMatchObject(next)
  })

  describe('absent without a provider key', () => {
    const without = { provider: keyless } as const
    it.each<[string, readonly Intent[], object]>([
      ['the owner is proven dead', at(hour, { ownerGone: true }), { kind: 'repeat' }],
      ['the call was seen to end', at(hour, {}, 'ambiguous'), { kind: 'repeat' }],
      ['the owner may only be slow', at(hour), { kind: 'review' }],
      ['one of two owners may only be slow', [...at(hour, { ownerGone: true }), ...at(hour)], { kind: 'review' }],
      ['too young, and the owner may only be slow', at(0), { kind: 'wait' }],
    ])('%s', (_name, doubt, next) => {
      expect(afterReconcile('absent', effect(without), doubt, bounds)).toMatchObject(next)
    })

    it('says why a person has to look', () => {
      const next = afterReconcile('absent', effect(without), at(hour), bounds)
      expect(next.kind === 'review' && next.why).toContain('not proven dead')
    })
  })
})
