import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineJob } from './contract.ts'
import { defineEffect, effectOf } from './effect.ts'
import type { ChokaQError } from './errors.ts'
import { defineHandler } from './handler.ts'
import { noKey } from './provider.ts'
import { stripe } from './providers/payments.ts'

const run = async () => ({ id: 'ch_1' })
const charge = { name: 'charge', provider: stripe, run }

function refusal(change: object): string {
  try {
    defineEffect({ ...charge, ...change })
    return 'accepted'
  } catch (error) {
    return (error as ChokaQError).message
  }
}

describe('defineEffect', () => {
  it('resolves what is declared', () => {
    const effect = defineEffect({ ...charge, settleAfter: '10s', reconcileFor: '2h', callTimeout: '30s' })
    expect(effectOf(effect)).toMatchObject({
      name: 'charge',
      provider: stripe,
      callTimeoutMs: 30_000,
      settleAfterMs: 10_000,
      reconcileForMs: 7_200_000,
      reconcile: undefined,
      compensate: undefined,
    })
    expect(Object.isFrozen(effect)).toBe(true)
  })

  it('takes the call timeout of its provider, waits an hour for reconcile, and derives when an absence counts', () => {
    const effect = effectOf(defineEffect({ ...charge, provider: noKey('ses', { callTimeout: '5s' }) }))
    expect(effect).toMatchObject({ callTimeoutMs: 5_000, settleAfterMs: undefined, reconcileForMs: 3_600_000 })
  })

  it.each<[string, object, string]>([
    ['an unknown field', { reconcil: run }, 'reconcile'],
    ['no name', { name: undefined }, "such as 'charge'"],
    ['a name that begins with a digit', { name: '1st' }, 'beginning with a letter'],
    ['a name with a line break', { name: 'a\nb' }, '1 to 64 letters'],
    ['a name that is too long', { name: 'a'.repeat(65) }, '1 to 64 letters'],
    ['no run', { run: undefined }, 'run must be a function'],
    ['a reconcile that is no function', { reconcile: {} }, 'reconcile must be a function'],
    ['a compensate that is no function', { compensate: 'refund' }, 'compensate must be a function'],
    ['no provider', { provider: undefined }, 'provider is missing'],
    ['the name of a provider', { provider: 'stripe' }, "noKey('name')"],
  ])('refuses %s', (_name, change, text) => {
    const message = refusal(change)
    expect(message).toMatch(/^The effect "[^"]*" is not valid: /)
    expect(message).toContain(text)
  })

  it.each(['settleAfter', 'reconcileFor', 'callTimeout'])('refuses a %s that is no duration', (field) => {
    expect(refusal({ [field]: 'soon' })).toContain(`${field} of effect charge`)
  })

  it('is recognised by nothing but its maker', () => {
    for (const each of [undefined, null, 'charge', {}, charge]) expect(effectOf(each)).toBeUndefined()
  })
})

describe('a handler with effects', () => {
  const job = defineJob({
    type: 'pay.v1',
    payload: z.object({ id: z.string() }),
    key: (p) => p.id,
    duplicateWindow: '1d',
  })
  const handler = (effects: unknown, sideEffects = 'effects'): string => {
    try {
      defineHandler(job, { sideEffects, effects, whenInterrupted: 'resume', run: async () => undefined } as never)
      return 'accepted'
    } catch (error) {
      return (error as ChokaQError).message
    }
  }

  it.each<[string, string, unknown]>([
    ['needs effects: {', 'effects', undefined],
    ['needs effects: {', 'effects', {}],
    ['effects.charge was not made by defineEffect', 'effects', { charge }],
    [
      'two of its effects are named "charge"',
      'effects',
      { one: defineEffect({ ...charge }), two: defineEffect({ ...charge }) },
    ],
    ["go with sideEffects: 'effects' only", 'unique-constraint', { charge: defineEffect({ ...charge }) }],
  ])('is refused: %s', (text, sideEffects, effects) => {
    expect(handler(effects, sideEffects)).toContain(text)
  })

  it('is accepted otherwise', () => {
    expect(handler({ charge: defineEffect({ ...charge }) })).toBe('accepted')
  })
})
