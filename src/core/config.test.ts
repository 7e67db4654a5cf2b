import { describe, expect, test } from 'vitest'
import {
  clientDefaults,
  clientOptionNames,
  resolveClientConfig,
  resolveWorkerConfig,
  workerDefaults,
  workerOptionNames,
} from './config.ts'
import { ChokaQError } from './errors.ts'

function codeOf(call: () => unknown): string {
  try {
    call()
    return 'accepted'
  } catch (error) {
    return error instanceof ChokaQError ? (error.code as string) : String(error)
  }
}

describe('the client config', () => {
  test('is the defaults, frozen, where nothing is said', () => {
    const config = resolveClientConfig({})
    expect(config).toEqual(clientDefaults)
    expect(Object.isFrozen(config)).toBe(true)
  })

  test('takes durations as texts and milliseconds', () => {
    const config = resolveClientConfig({ enqueueDeadline: '5s', maxDelay: 86_400_000, resendFor: '2h' })
    expect(config).toMatchObject({ enqueueDeadlineMs: 5_000, maxDelayMs: 86_400_000, resendForMs: 7_200_000 })
  })

  test('allows delays longer than a timer can wait', () => {
    expect(resolveClientConfig({ maxDelay: '3650d' }).maxDelayMs).toBe(3_650 * 86_400_000)
  })

  test.each([
    [{ maxPayloadBytes: 0 }, 'CHOKAQ_OPTION_INVALID'],
    [{ maxPayloadBytes: 1.5 }, 'CHOKAQ_OPTION_INVALID'],
    [{ maxBatchCount: 100_001 }, 'CHOKAQ_OPTION_INVALID'],
    [{ enqueueDeadline: 0 }, 'CHOKAQ_OPTION_INVALID'],
    [{ enqueueDeadline: '25d' }, 'CHOKAQ_OPTION_INVALID'],
    [{ resendFor: 'long' }, 'CHOKAQ_DURATION_INVALID'],
    [{ maxDelai: '1d' }, 'CHOKAQ_CONFIG_INVALID'],
    [{ __proto__: null, constructor: 1 }, 'CHOKAQ_CONFIG_INVALID'],
  ])('refuses %j', (options, code) => {
    expect(codeOf(() => resolveClientConfig(options as never))).toBe(code)
  })

  test('says what was meant', () => {
    expect(() => resolveClientConfig({ maxDelai: '1d' } as never)).toThrow(/maxDelay/)
  })

  test('knows the fields that another part reads', () => {
    expect(codeOf(() => resolveClientConfig({ storage: 1 } as never, ['storage']))).toBe('accepted')
  })
})

describe('the worker config', () => {
  test('is the defaults, frozen, with a prefetch of twice the concurrency', () => {
    expect(resolveWorkerConfig({})).toEqual({ ...workerDefaults, prefetch: 20, waive: {} })
    expect(Object.isFrozen(resolveWorkerConfig({}))).toBe(true)
    expect(resolveWorkerConfig({ concurrency: 3 }).prefetch).toBe(6)
    expect(resolveWorkerConfig({ concurrency: 900 }).prefetch).toBe(500)
  })

  test('lets the shutdown grace, and the budgets, be nothing', () => {
    const config = resolveWorkerConfig({ shutdownGrace: 0, crashBudget: 0, fetchCrashBudget: 0 })
    expect(config).toMatchObject({ shutdownGraceMs: 0, crashBudget: 0, fetchCrashBudget: 0 })
  })

  test.each([
    [{ concurrency: 0 }],
    [{ concurrency: 1_001 }],
    [{ concurrency: '3' }],
    [{ concurrency: Number.NaN }],
    [{ concurrency: Infinity }],
    [{ prefetch: 0 }],
    [{ heartbeat: 0 }],
    [{ timeout: 2 ** 31 }],
    [{ crashBudget: -1 }],
    [{ maxResultBytes: 50_000_001 }],
  ])('refuses %j', (options) => {
    expect(codeOf(() => resolveWorkerConfig(options as never))).toBe('CHOKAQ_OPTION_INVALID')
  })

  test('keeps its own copy of the waivers', () => {
    const waive = { 'fence-before-dead': 'because' }
    const config = resolveWorkerConfig({ waive })
    waive['fence-before-dead'] = 'changed'
    expect(config.waive).toEqual({ 'fence-before-dead': 'because' })
  })
})

test('every option of the types is in the list of known names', () => {
  expect(Object.keys(resolveClientConfig({}))).toHaveLength(clientOptionNames.length)
  expect(Object.keys(resolveWorkerConfig({}))).toHaveLength(workerOptionNames.length)
})
