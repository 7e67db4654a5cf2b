import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkBoot, windowsOf } from './boot-check.ts'
import { resolveClientConfig, resolveWorkerConfig, type WorkerOptions } from './config.ts'
import { defineJob } from './contract.ts'
import { checkEffectWindows, effectRules } from './effect-windows.ts'
import { defineEffect, effectOf, type EffectDefinition } from './effect.ts'
import { defineHandler, handlerOf, type ResolvedHandler } from './handler.ts'
import { defineProvider, noKey } from './provider.ts'
import { brevo, sqsFifo } from './providers/messages.ts'
import { paypalOrders, stripe } from './providers/payments.ts'
import { windowRules } from './windows.ts'

const client = resolveClientConfig({})
const job = defineJob({
  type: 'pay.v1',
  payload: z.object({ id: z.string() }),
  key: (p) => p.id,
  duplicateWindow: '1d',
})
const run = async () => undefined
const reconcile = async () => 'unknown' as const

function handler(change: Partial<EffectDefinition<unknown, unknown>>, retryFor: '20h' | '1h' = '20h'): ResolvedHandler {
  const charge = defineEffect<unknown, unknown>({ name: 'charge', provider: stripe, run, ...change })
  const retry = { for: retryFor, attempts: 3, backoff: { base: '1s', cap: '10s' } } as const
  return handlerOf(
    defineHandler(job, {
      sideEffects: 'effects',
      effects: { charge },
      whenInterrupted: 'resume',
      retry,
      timeout: '1m',
      run,
    }),
  )
}

function boot(of: ResolvedHandler, options: WorkerOptions = {}) {
  const { refusals, warnings } = checkBoot([of], resolveWorkerConfig(options), client)
  return { refusals: refusals.map(({ rule }) => rule), warnings: warnings.map(({ rule }) => rule) }
}

const short = (dedupeWindow: '100s' | '2m' | '3m') =>
  defineProvider({ name: 'acme', keyFormat: { maxLength: 36 }, dedupeWindow, onProviderError: 'reexecuted' })

describe('the windows of an effect', () => {
  it('are rules like the others, so that waivers know them', () => {
    for (const rule of effectRules) expect(windowRules).toContain(rule)
  })

  it.each<[string, ResolvedHandler, object]>([
    ['stripe, a day', handler({}), { refusals: [], warnings: [] }],
    [
      'paypal, six hours and a lifetime of twenty',
      handler({ provider: paypalOrders }),
      { refusals: [], warnings: ['window-fits-lifetime'] },
    ],
    ['the same with a reconcile', handler({ provider: paypalOrders, reconcile }), { refusals: [], warnings: [] }],
    ['the same with a short lifetime', handler({ provider: paypalOrders }, '1h'), { refusals: [], warnings: [] }],
    ['brevo, a quarter of an hour', handler({ provider: brevo }), { refusals: [], warnings: ['window-fits-lifetime'] }],
    [
      'sqs, five minutes, its calls half a minute',
      handler({ provider: sqsFifo }),
      { refusals: [], warnings: ['window-fits-lifetime'] },
    ],
    ['no key', handler({ provider: noKey('ses') }), { refusals: [], warnings: [] }],
    [
      'a call as long as the window',
      handler({ provider: short('2m') }),
      { refusals: ['window-over-margin'], warnings: ['window-fits-lifetime'] },
    ],
    [
      'a window as long as its margin',
      handler({ provider: short('100s'), callTimeout: '79s', reconcile }),
      { refusals: ['window-over-margin'], warnings: [] },
    ],
    ['a window just over its margin', handler({ provider: short('3m'), reconcile }), { refusals: [], warnings: [] }],
    [
      'a reconcile believed too early',
      handler({ reconcile, settleAfter: '2m' }),
      { refusals: ['settle-after-owner'], warnings: [] },
    ],
    [
      'a reconcile believed just in time',
      handler({ reconcile, settleAfter: '2m' as const, callTimeout: '85s' }),
      { refusals: [], warnings: [] },
    ],
    ['no reconcile, so settleAfter does not matter', handler({ settleAfter: '1s' }), { refusals: [], warnings: [] }],
  ])('of %s', (_name, of, findings) => {
    expect(boot(of)).toEqual(findings)
  })

  it('hold to the millisecond', () => {
    const w = windowsOf(handler({}), resolveWorkerConfig({}), client)
    const rules = (change: Partial<EffectDefinition<unknown, unknown>>): readonly string[] => {
      const effect = effectOf(defineEffect<unknown, unknown>({ name: 'e', provider: stripe, run, ...change }))
      if (effect === undefined) return ['nothing']
      const { refusals, warnings } = checkEffectWindows(effect, w, 'here')
      return [...refusals, ...warnings].map(({ rule }) => rule)
    }
    // W − 1 % − F − (A + T) is what is left for one call.
    const leftMs = 86_400_000 * 0.99 - w.fenceMs - w.retryLifetimeMs - w.timeoutMs
    expect(rules({ callTimeout: leftMs })).toEqual([])
    expect(rules({ callTimeout: leftMs + 1 })).toEqual(['window-fits-lifetime'])
    const settleMs = 1_000 + w.deadMs + w.sweepMs
    expect(rules({ reconcile, callTimeout: 1_000, settleAfter: settleMs })).toEqual([])
    expect(rules({ reconcile, callTimeout: 1_000, settleAfter: settleMs - 1 })).toEqual(['settle-after-owner'])
  })

  it('name the type, the effect and the numbers', () => {
    const { refusals, warnings } = checkBoot([handler({ provider: short('2m') })], resolveWorkerConfig({}), client)
    expect(refusals[0]?.text).toMatch(/^type pay\.v1, effect "charge": acme remembers a key for 2m, and .* 2m 21s/)
    expect(refusals[0]?.text).toContain('Shorten callTimeout')
    expect(warnings[0]?.text).toContain('20h 1m after the first')
  })

  it('are waived by name and reason', () => {
    const of = handler({ reconcile, settleAfter: '2m' })
    expect(boot(of, { waive: { 'settle-after-owner': 'its reads are strongly consistent' } })).toEqual({
      refusals: [],
      warnings: ['settle-after-owner'],
    })
  })
})
