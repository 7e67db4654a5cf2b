import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  backoffMs,
  defaultRetryPolicy,
  maxTotalBackoffMs,
  resolveRetryPolicy,
  type RetryInput,
  type RetryPolicy,
} from './retry-policy.ts'

const steady: RetryPolicy = { ...defaultRetryPolicy, jitter: 0 }

const anyPolicy = fc.record({
  attempts: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 1_000_000 })),
  baseMs: fc.nat({ max: 86_400_000 }),
  factor: fc.oneof(fc.constant(1), fc.double({ min: 1, max: 100, noNaN: true })),
  capMs: fc.nat({ max: 31_536_000_000 }),
  jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  lifetimeMs: fc.constant(1),
})
const anyRandom = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

describe('backoffMs', () => {
  test.each([
    [1, 3_000],
    [2, 6_000],
    [3, 12_000],
    [11, 3_072_000],
    [12, 3_600_000],
    [22, 3_600_000],
    [1e9, 3_600_000],
    [Number.MAX_VALUE, 3_600_000],
    [0, 3_000],
    [-5, 3_000],
    [NaN, 3_000],
  ])('after failure %d without jitter: %d ms', (failures, ms) => {
    expect(backoffMs(steady, failures, 0.5)).toBe(ms)
  })

  test.each([
    [0, 2_700],
    [0.5, 3_000],
    [0.999999, 3_300],
    [1, 3_300],
    [7, 3_300],
    [-1, 2_700],
    [NaN, 2_700],
  ])('random %d spreads 3 s to %d ms', (random, ms) => {
    expect(backoffMs(defaultRetryPolicy, 1, random)).toBe(ms)
  })

  test.each<[Partial<RetryPolicy>, number, number]>([
    [{ baseMs: 0 }, 1e9, 0],
    [{ capMs: 0 }, 1, 0],
    [{ baseMs: 10, capMs: 5 }, 3, 5],
    [{ factor: 1 }, 1e9, 3_000],
    [{ factor: 1.5 }, 2, 4_500],
    [{ factor: 1e300 }, 1e9, 3_600_000],
    [{ factor: 1.0000001 }, 1e9, 3_600_000],
    [{ factor: 1.0000001 }, 2, 3_000],
    [{ baseMs: 1, capMs: 1, factor: 3 }, 9, 1],
  ])('%o after failure %d: %d ms', (change, failures, ms) => {
    expect(backoffMs({ ...steady, ...change }, failures, 0)).toBe(ms)
  })

  test('is whole, finite and within its bounds for every policy, failure and random number', () => {
    const failures = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 1_000_000_000 }))
    fc.assert(
      fc.property(anyPolicy, failures, anyRandom, (policy, failure, random) => {
        const power = policy.baseMs === 0 ? 0 : policy.baseMs * policy.factor ** (failure - 1)
        const wait = Math.round(Math.min(policy.capMs, power))
        const ms = backoffMs(policy, failure, random)
        expect(Number.isSafeInteger(ms)).toBe(true)
        // The power is computed in another way than by the code, so its last digit may differ before rounding.
        expect(ms).toBeGreaterThanOrEqual(wait * (1 - policy.jitter) - 1)
        expect(ms).toBeLessThanOrEqual(wait * (1 + policy.jitter) + 1)
      }),
      { numRuns: 1_000 },
    )
  })

  test('never shrinks with the number of failures', () => {
    fc.assert(
      fc.property(anyPolicy, fc.integer({ min: 1, max: 2_000 }), anyRandom, (policy, failure, random) => {
        expect(backoffMs(policy, failure + 1, random)).toBeGreaterThanOrEqual(backoffMs(policy, failure, random))
      }),
    )
  })

  test('reaches both ends of its range', () => {
    const policy = { ...steady, baseMs: 10, jitter: 0.5 }
    const seen = new Set(Array.from({ length: 1_000 }, (_, i) => backoffMs(policy, 1, i / 1_000)))
    expect([...seen].sort((a, b) => a - b)).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
  })
})

describe('maxTotalBackoffMs', () => {
  test('is the sum of the longest waits of the default policy: 11 that grow, 10 at the cap', () => {
    const growing = 3_000 * (2 ** 11 - 1)
    expect(maxTotalBackoffMs(steady)).toBe(growing + 10 * 3_600_000)
    expect(maxTotalBackoffMs(defaultRetryPolicy)).toBe(46_355_100) // 1.1 times that
  })

  test.each([
    [1, 0],
    [2, 3_000],
    [3, 9_000],
  ])('%d attempts wait %d ms', (attempts, ms) => {
    expect(maxTotalBackoffMs({ ...steady, attempts })).toBe(ms)
  })

  test('is exact for a steady wait and quick for any number of attempts', () => {
    expect(maxTotalBackoffMs({ ...steady, factor: 1, attempts: 1_000_000_001 })).toBe(3_000 * 1e9)
  })

  test('bounds the waits of every job', () => {
    const policies = anyPolicy.map((policy) => ({ ...policy, attempts: 1 + (policy.attempts % 2_000) }))
    fc.assert(
      fc.property(policies, anyRandom, (policy, random) => {
        let total = 0
        for (let failure = 1; failure < policy.attempts; failure++) total += backoffMs(policy, failure, random)
        expect(maxTotalBackoffMs(policy)).toBeGreaterThanOrEqual(total)
      }),
    )
  })
})

describe('resolveRetryPolicy', () => {
  test('gives the frozen defaults for nothing', () => {
    expect(resolveRetryPolicy()).toEqual(defaultRetryPolicy)
    expect(resolveRetryPolicy({ backoff: {} })).toEqual(defaultRetryPolicy)
    expect(Object.isFrozen(resolveRetryPolicy())).toBe(true)
    expect(Object.isFrozen(defaultRetryPolicy)).toBe(true)
  })

  test('takes every option', () => {
    const input: RetryInput = { attempts: 5, for: '2h', backoff: { base: '1s', factor: 3, cap: '10m', jitter: 0 } }
    const whole = { attempts: 5, baseMs: 1_000, factor: 3, capMs: 600_000, jitter: 0, lifetimeMs: 7_200_000 }
    expect(resolveRetryPolicy(input)).toEqual(whole)
    expect(resolveRetryPolicy({ attempts: 6 }, whole)).toEqual({ ...whole, attempts: 6 })
  })

  test('a base above the default cap raises the cap', () => {
    expect(resolveRetryPolicy({ backoff: { base: '2h' } })).toMatchObject({ baseMs: 7_200_000, capMs: 7_200_000 })
  })

  test.each<[unknown, string]>([
    [{ attempt: 1 }, 'unknown option "attempt" in retry; did you mean "attempts"?'],
    [{ backoff: { facto: 1 } }, 'unknown option "facto" in retry.backoff; did you mean "factor"?'],
    [{ backoff: 5 }, 'retry.backoff is 5; expected an object'],
    [{ backoff: [] }, 'retry.backoff is an array; expected an object'],
    [null, 'retry is null; expected an object'],
    ['5', 'retry is "5"; expected an object'],
  ])('%o: %s', (input, problem) => {
    expect(() => resolveRetryPolicy(input as RetryInput)).toThrow(
      expect.objectContaining({ code: 'CHOKAQ_CONFIG_INVALID', details: { problem } }),
    )
  })

  test.each<[unknown, string, string]>([
    [{ attempts: 0 }, 'retry.attempts', '0'],
    [{ attempts: 1.5 }, 'retry.attempts', '1.5'],
    [{ attempts: NaN }, 'retry.attempts', 'NaN'],
    [{ attempts: Infinity }, 'retry.attempts', 'Infinity'],
    [{ attempts: '5' }, 'retry.attempts', '"5"'],
    [{ attempts: null }, 'retry.attempts', 'null'],
    [{ backoff: { factor: 0.5 } }, 'retry.backoff.factor', '0.5'],
    [{ backoff: { factor: 101 } }, 'retry.backoff.factor', '101'],
    [{ backoff: { jitter: -0.1 } }, 'retry.backoff.jitter', '-0.1'],
    [{ backoff: { jitter: 1.1 } }, 'retry.backoff.jitter', '1.1'],
    [{ backoff: { base: '2s', cap: '1s' } }, 'retry.backoff.cap', '1s'],
    [{ backoff: { cap: '366d' } }, 'retry.backoff.cap', '366d'],
    [{ for: 0 }, 'retry.for', '0ms'],
  ])('%o is out of range', (input, option, value) => {
    expect(() => resolveRetryPolicy(input as RetryInput)).toThrow(
      expect.objectContaining({
        code: 'CHOKAQ_OPTION_INVALID',
        details: { option, value, expected: expect.any(String) as string },
      }),
    )
  })

  test.each([{ for: 'x' }, { backoff: { base: -1 } }, { backoff: { cap: NaN } }])('%o is no duration', (input) => {
    expect(() => resolveRetryPolicy(input as RetryInput)).toThrow(
      expect.objectContaining({ code: 'CHOKAQ_DURATION_INVALID' }),
    )
  })
})
