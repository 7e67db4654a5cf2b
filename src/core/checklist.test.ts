import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checklistRow, declaredAnswers, lowerLevel, observedLevel, type SafetyLevel } from './checklist.ts'
import { resolveClientConfig, resolveWorkerConfig } from './config.ts'
import { defineJob } from './contract.ts'
import { defineEffect, type EffectDefinition } from './effect.ts'
import { defineHandler, handlerOf, type Handler } from './handler.ts'
import { defineProvider, noKey } from './provider.ts'
import { brevo } from './providers/messages.ts'
import { paypalPayments, stripe } from './providers/payments.ts'

const row = (handler: Handler) => checklistRow(handlerOf(handler), resolveWorkerConfig({}), resolveClientConfig({}))
const payload = z.object({ id: z.string() })
const run = async () => undefined
const plain = defineJob({ type: 'plain.v1', payload })
const keyed = defineJob({ type: 'pay.v2', payload, key: (p) => p.id, duplicateWindow: '60d', allowRaw: true })
const byId = defineJob({ type: 'once.v1', payload, key: 'job-id' })

describe('checklistRow', () => {
  it('shows a handler without a key', () => {
    expect(row(defineHandler(plain, { sideEffects: 'none', run }))).toEqual({
      type: 'plain.v1',
      key: 'none',
      keyScope: undefined,
      sideEffects: 'none',
      enforcedBy: 'it has no side effects',
      duplicateWindowMs: undefined,
      whenInterrupted: 'resume',
      allowRaw: false,
      level: 'at least once',
      markerLifeMs: undefined,
    })
  })

  it('shows the key, its scope over all versions, and how long it is kept', () => {
    const { key, keyScope, duplicateWindowMs, markerLifeMs, allowRaw } = row(
      defineHandler(keyed, { sideEffects: 'unique-constraint', whenInterrupted: 'resume', run }),
    )
    expect({ key, keyScope, allowRaw }).toEqual({ key: 'payload', keyScope: 'pay', allowRaw: true })
    expect(markerLifeMs).toBeGreaterThan(duplicateWindowMs ?? Infinity)
  })

  it('has no duplicate window where each enqueue is its own operation', () => {
    const shown = row(defineHandler(byId, { sideEffects: 'unguarded', whenInterrupted: 'review', run }))
    expect(shown).toMatchObject({ key: 'job-id', duplicateWindowMs: undefined })
    expect(shown.markerLifeMs).toBeGreaterThan(0)
  })

  it('gives the reason of a repeatable handler', () => {
    expect(row(defineHandler(plain, { sideEffects: 'repeatable', because: 'PUT is idempotent', run }))).toMatchObject({
      enforcedBy: 'PUT is idempotent',
      level: 'at least once',
    })
  })

  it.each([
    ['same-transaction', 'resume', 'exactly once (same database)'],
    ['same-transaction', 'review', 'at most once + review'],
    ['unique-constraint', 'resume', 'at least once'],
    ['read-before-write', 'resume', 'at least once'],
    ['read-before-write', 'review', 'at most once + review'],
  ] as const)('of %s and %s is %s', (sideEffects, whenInterrupted, level) => {
    expect(row(defineHandler(keyed, { sideEffects, whenInterrupted, run })).level).toBe(level)
  })

  const reconcile = async () => 'unknown' as const
  const keyless = noKey('ses')
  const forever = defineProvider({
    name: 'tiger',
    keyFormat: { maxLength: 36 },
    dedupeWindow: 'forever',
    onProviderError: 'reexecuted',
  })
  it.each<[string, readonly Partial<EffectDefinition<unknown, unknown>>[], string]>([
    ['a provider with keys', [{ provider: stripe }], 'effectively once (provider, 24 h)'],
    ['a provider with keys and a reconcile', [{ provider: stripe, reconcile }], 'effectively once (provider, 24 h)'],
    [
      'the shortest memory of two',
      [{ provider: paypalPayments }, { provider: brevo }],
      'effectively once (provider, 15 min)',
    ],
    ['a long memory', [{ provider: paypalPayments }], 'effectively once (provider, 45 d)'],
    ['a provider that never forgets', [{ provider: forever }], 'effectively once (provider, for ever)'],
    ['no keys, but a reconcile', [{ provider: keyless, reconcile }], 'effectively once (reconcile)'],
    ['the lower of two', [{ provider: stripe }, { provider: keyless, reconcile }], 'effectively once (reconcile)'],
    ['no keys and no reconcile', [{ provider: keyless }], 'at most once + review'],
    [
      'the lowest of three',
      [{ provider: stripe }, { provider: keyless, reconcile }, { provider: keyless }],
      'at most once + review',
    ],
  ])('of effects with %s', (_name, definitions, level) => {
    const effects = Object.fromEntries(
      definitions.map((each, index) => [
        `e${index}`,
        defineEffect<unknown, unknown>({ provider: stripe, run, ...each, name: `e${index}` }),
      ]),
    )
    const answers = { sideEffects: 'effects', effects, run } as const
    expect(row(defineHandler(keyed, { ...answers, whenInterrupted: 'resume' })).level).toBe(level)
    expect(row(defineHandler(keyed, { ...answers, whenInterrupted: 'review' })).level).toBe('at most once + review')
  })
})

describe('what was observed', () => {
  const charge = defineEffect<unknown, unknown>({ name: 'charge', provider: stripe, run })
  const found = async () => 'absent' as const
  const mail = defineEffect<unknown, unknown>({ name: 'mail', provider: noKey('ses'), run, reconcile: found })
  const answers = { sideEffects: 'effects', whenInterrupted: 'resume', run } as const
  const handler = handlerOf(defineHandler(keyed, { ...answers, effects: { charge, mail } }))
  const seen = (change: object) => ({
    type: 'pay.v2',
    effect: 'charge',
    callCount: 3,
    outcomes: { done: 3 },
    keyedCount: 3,
    doubledCount: 0,
    ...change,
  })
  const level = (...changes: readonly object[]) => observedLevel(declaredAnswers(handler), changes.map(seen))

  it('has the level of its calls, and none where nothing was seen', () => {
    expect(level()).toBeUndefined()
    expect(level({})).toBe('effectively once (provider, 24 h)')
    expect(level({}, { effect: 'mail', keyedCount: 0 })).toBe('effectively once (reconcile)')
  })

  it('lowers where a call took no key along, was of an effect that is gone, or happened twice', () => {
    expect(level({ keyedCount: 2 })).toBe('at most once + review')
    expect(level({}, { effect: 'sms', keyedCount: 0 })).toBe('at most once + review')
    expect(level({}, { doubledCount: 2 })).toBe('at least once')
  })

  it('counts the lower of two, and an unknown one lowers nothing', () => {
    const highestFirst: readonly SafetyLevel[] = [
      'exactly once (same database)',
      'effectively once (provider, 24 h)',
      'effectively once (reconcile)',
      'at most once + review',
      'at least once',
    ]
    highestFirst.forEach((one, at) => {
      for (const other of highestFirst.slice(at)) {
        expect([lowerLevel(one, other), lowerLevel(other, one)]).toEqual([other, other])
      }
      expect(lowerLevel(one, undefined)).toBe(one)
    })
  })
})
