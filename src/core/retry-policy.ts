import { shortValue } from './describe-value.ts'
import { unknownKeyProblem } from './did-you-mean.ts'
import { durationMs, formatMs, type Duration } from './duration.ts'
import { ChokaQError } from './errors.ts'

/** How often and how fast failed attempts are repeated. Stamped on the row at start, so that rescue needs no code. */
export interface RetryPolicy {
  /** Failures (throws and timeouts) after which the job is buried. 1 means no retry. */
  readonly attempts: number
  /** The wait after the first failure, in milliseconds. */
  readonly baseMs: number
  /** What each further wait is multiplied with; at least 1. */
  readonly factor: number
  /** The longest wait before jitter, in milliseconds. */
  readonly capMs: number
  /** The share of the wait, 0 to 1, by which it is spread to both sides. */
  readonly jitter: number
  /** Milliseconds from the first start to the last possible start. */
  readonly lifetimeMs: number
}

export interface RetryInput {
  /** Defaults to 22. */
  readonly attempts?: number
  /** The retry lifetime, from the first start. Defaults to '20h'. */
  readonly for?: Duration
  /** Defaults to 3 s, doubled up to 1 h, ± 10 %. */
  readonly backoff?: {
    readonly base?: Duration
    readonly factor?: number
    readonly cap?: Duration
    readonly jitter?: number
  }
}

/** 22 attempts, 3 s × 2^n capped at 1 h, ± 10 %, within 20 h. */
export const defaultRetryPolicy: RetryPolicy = Object.freeze({
  attempts: 22,
  baseMs: 3_000,
  factor: 2,
  capMs: 3_600_000,
  jitter: 0.1,
  lifetimeMs: 72_000_000,
})

const maxAttempts = 1_000_000
const maxFactor = 100
const yearMs = 365 * 86_400_000

/**
 * The whole milliseconds to wait after the `failureCount`-th failure (the first is 1; anything below counts as 1).
 * With d = min(cap, base × factor^(failureCount - 1)), rounded: always within [d (1 - jitter), d (1 + jitter)].
 * `random01` is uniform in [0, 1); a value outside is clamped.
 */
export function backoffMs(policy: RetryPolicy, failureCount: number, random01: number): number {
  const wait = plainWaitMs(policy, failureCount)
  const low = Math.ceil(wait * (1 - policy.jitter))
  const high = Math.floor(wait * (1 + policy.jitter))
  const share = random01 >= 0 ? Math.min(random01, 1) : 0 // NaN becomes 0, too
  return Math.min(high, low + Math.floor(share * (high - low + 1)))
}

function plainWaitMs({ baseMs, factor, capMs }: RetryPolicy, failureCount: number): number {
  if (baseMs <= 0 || capMs <= 0) return 0
  if (baseMs >= capMs) return Math.round(capMs)
  if (factor <= 1) return Math.round(baseMs)
  // The exponent is clamped to where the cap is reached, so that no power overflows however many failures there were.
  const stepsToCap = Math.ceil(Math.log(capMs / baseMs) / Math.log1p(factor - 1)) + 1
  const steps = failureCount >= 1 ? Math.min(failureCount - 1, stepsToCap) : 0
  return Math.round(Math.min(capMs, baseMs * factor ** steps))
}

/** An upper bound of all waits of a job that fails every attempt, jitter included, in milliseconds; for boot arithmetic. */
export function maxTotalBackoffMs(policy: RetryPolicy): number {
  const waits = Math.max(0, policy.attempts - 1) // nothing is waited for after the last failure
  const exact = Math.min(waits, 1_000)
  let total = 0
  for (let failure = 1; failure <= exact; failure++) total += backoffMs(policy, failure, 1)
  // Waits never shrink, so the last one bounds what was not summed one by one.
  return total + (waits - exact) * backoffMs(policy, waits, 1)
}

/**
 * The frozen policy from what a user wrote; what is missing comes from `defaults`. A `base` above the default cap raises
 * the cap to itself.
 *
 * Throws CHOKAQ_CONFIG_INVALID for unknown options, CHOKAQ_DURATION_INVALID for bad durations and CHOKAQ_OPTION_INVALID
 * for values out of range.
 */
export function resolveRetryPolicy(input: RetryInput = {}, defaults: RetryPolicy = defaultRetryPolicy): RetryPolicy {
  checkShape(input, ['attempts', 'for', 'backoff'], 'retry')
  const backoff = input.backoff ?? {}
  checkShape(backoff, ['base', 'factor', 'cap', 'jitter'], 'retry.backoff')

  const waitLimits = { minMs: 0, maxMs: yearMs }
  const baseMs = optionalMs(backoff.base, 'retry.backoff.base', waitLimits) ?? defaults.baseMs
  const capMs = optionalMs(backoff.cap, 'retry.backoff.cap', waitLimits) ?? Math.max(defaults.capMs, baseMs)
  if (capMs < baseMs) {
    throw new ChokaQError('CHOKAQ_OPTION_INVALID', {
      option: 'retry.backoff.cap',
      value: formatMs(capMs),
      expected: `at least retry.backoff.base (${formatMs(baseMs)})`,
    })
  }
  return Object.freeze({
    attempts:
      numberWithin(input.attempts, 'retry.attempts', { min: 1, max: maxAttempts, whole: true }) ?? defaults.attempts,
    baseMs,
    factor: numberWithin(backoff.factor, 'retry.backoff.factor', { min: 1, max: maxFactor }) ?? defaults.factor,
    capMs,
    jitter: numberWithin(backoff.jitter, 'retry.backoff.jitter', { min: 0, max: 1 }) ?? defaults.jitter,
    lifetimeMs: optionalMs(input.for, 'retry.for', { minMs: 1, maxMs: yearMs }) ?? defaults.lifetimeMs,
  })
}

function checkShape(input: unknown, known: readonly string[], what: string): void {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new ChokaQError('CHOKAQ_CONFIG_INVALID', { problem: `${what} is ${shortValue(input)}; expected an object` })
  }
  const problem = unknownKeyProblem(input, known, what)
  if (problem !== undefined) throw new ChokaQError('CHOKAQ_CONFIG_INVALID', { problem })
}

function optionalMs(
  value: Duration | undefined,
  name: string,
  limits: { readonly minMs: number; readonly maxMs: number },
): number | undefined {
  return value === undefined ? undefined : durationMs(value, name, limits)
}

interface Range {
  readonly min: number
  readonly max: number
  readonly whole?: boolean
}

function numberWithin(value: number | undefined, option: string, range: Range): number | undefined {
  if (value === undefined) return undefined
  const { min, max, whole = false } = range
  const fits = typeof value === 'number' && value >= min && value <= max && (!whole || Number.isInteger(value))
  if (!fits) {
    throw new ChokaQError('CHOKAQ_OPTION_INVALID', {
      option,
      value: shortValue(value),
      expected: `a ${whole ? 'whole ' : ''}number from ${min} to ${max}`,
    })
  }
  return value
}
