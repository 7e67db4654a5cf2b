import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkBoot, policyFor, windowsOf } from './boot-check.ts'
import { resolveClientConfig, resolveWorkerConfig, type WorkerOptions } from './config.ts'
import { defineJob } from './contract.ts'
import { defineHandler, handlerOf, type ResolvedHandler } from './handler.ts'
import { leaseSpanMs, markerLifeMs } from './windows.ts'

const hour = 3_600_000
const day = 24 * hour
const client = resolveClientConfig({})
const worker = (options: WorkerOptions = {}) => resolveWorkerConfig(options)
const payload = z.object({ id: z.string() })
const plain = defineJob({ type: 'resize.v1', payload })
const payment = defineJob({ type: 'payment.v1', payload, key: (p) => p.id, duplicateWindow: '60d' })
const rawPayment = defineJob({ type: 'raw.v1', payload, key: (p) => p.id, duplicateWindow: '60d', allowRaw: true })
const run = async () => undefined

const resize = handlerOf(defineHandler(plain, { sideEffects: 'none', run, retry: { attempts: 3 } }))
const pay = handlerOf(
  defineHandler(payment, {
    sideEffects: 'unguarded',
    whenInterrupted: 'review',
    run,
    retry: { attempts: 5, for: '2h' },
    timeout: '1m',
  }),
)
const rawPay = handlerOf(
  defineHandler(rawPayment, { sideEffects: 'unique-constraint', whenInterrupted: 'resume', run, timeout: '1m' }),
)

function rules(handlers: readonly ResolvedHandler[], options: WorkerOptions) {
  const { refusals, warnings } = checkBoot(handlers, worker(options), client)
  return { refusals: refusals.map(({ rule }) => rule), warnings: warnings.map(({ rule }) => rule) }
}

describe('checkBoot', () => {
  it('has nothing to say about the defaults and a modest handler', () => {
    expect(rules([resize, pay], {})).toEqual({ refusals: [], warnings: [] })
  })

  it('checks the worker even without handlers, and its rules once with many', () => {
    const late = { fenceAfter: '29s' } as const
    expect(rules([], late).refusals).toEqual(['fence-before-dead'])
    expect(rules([resize, pay, rawPay], late).refusals).toEqual(['fence-before-dead'])
    const { refusals } = checkBoot([resize], worker(late), client)
    expect(refusals[0]?.text).toMatch(/^worker: the self-fence \(29s\) must be at most 24s/)
  })

  it('checks the rules of types once for each, and names the type', () => {
    const { refusals } = checkBoot([resize, pay], worker({ archiveRetention: '1d' }), client)
    expect(refusals.map(({ rule, text }) => [rule, text.split(':')[0]])).toEqual([
      ['archive-outlives-resend', 'type resize.v1'],
      ['archive-outlives-resend', 'type payment.v1'],
    ])
  })

  it('warns of attempts that outlast the retry lifetime', () => {
    const slow = handlerOf(defineHandler(plain, { sideEffects: 'none', run, timeout: '2h' }))
    expect(rules([slow], {})).toEqual({ refusals: [], warnings: ['backoff-fits-lifetime'] })
  })

  it('warns of a shutdown that the platform cuts short', () => {
    expect(rules([], { killDeadline: '10s' })).toEqual({ refusals: [], warnings: ['shutdown-before-kill'] })
  })

  it('turns a waived refusal into a warning with its reason, for every type', () => {
    const options = { archiveRetention: '1d', waive: { 'archive-outlives-resend': 'no resends here' } } as const
    const { refusals, warnings } = checkBoot([resize, pay], worker(options), client)
    expect(refusals).toEqual([])
    expect(warnings).toHaveLength(2)
    expect(warnings[0]?.text).toMatch(/Waived: no resends here$/)
  })

  it('refuses a waiver of an unknown rule once, however many handlers there are', () => {
    expect(rules([resize, pay], { waive: { 'archive-outlive-resend': 'typo' } }).refusals).toEqual(['waiver-unknown'])
  })
})

describe('policyFor', () => {
  it('takes the answers from the handler and the rest from the worker', () => {
    expect(policyFor(pay, worker({ crashBudget: 4, fetchCrashBudget: 6 }), client)).toEqual({
      type: 'payment.v1',
      keyed: true,
      fastStart: false,
      whenInterrupted: 'review',
      crashBudget: 4,
      fetchCrashBudget: 6,
      retryLifetimeMs: 2 * hour,
      timeoutMs: 60_000,
      // max(U, R, Δ) + A + T + G + D + S
      markerLifeMs: 60 * day + 2 * hour + 60_000 + 3_000 + 30_000 + 5_000,
    })
  })

  it('lets a handler that resumes start fast, and falls back to the timeout of the worker', () => {
    expect(policyFor(resize, worker({ timeout: '20s' }), client)).toMatchObject({
      keyed: false,
      fastStart: true,
      whenInterrupted: 'resume',
      timeoutMs: 20_000,
    })
  })

  it('gives a type with raw enqueue the longer marker life', () => {
    const windows = windowsOf(rawPay, worker(), client)
    expect(policyFor(rawPay, worker(), client).markerLifeMs).toBe(markerLifeMs(windows))
    expect(markerLifeMs(windows)).toBe(60 * day + 30 * day + 2 * leaseSpanMs(windows) + 14 * day)
  })
})
