import { shortValue } from './describe-value.ts'
import { ChokaQError } from './errors.ts'

/** Milliseconds as a number, or a text of one number and one unit: '500ms', '30s', '1.5h', '7d'. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

export interface DurationLimits {
  /** The smallest value allowed, in milliseconds. Defaults to 0. */
  readonly minMs?: number
  /** The largest value allowed, in milliseconds. Defaults to 2^53 - 1, the largest exact integer. */
  readonly maxMs?: number
}

const unitMs = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const
type Unit = keyof typeof unitMs

const durationText = /^(\d+(?:\.\d+)?|\.\d+)(ms|s|m|h|d)$/

/**
 * The duration in whole milliseconds, rounded to the nearest. `name` is the option, as its user wrote it.
 *
 * Throws CHOKAQ_DURATION_INVALID for anything that is no finite, non-negative duration (signs, exponents, blanks and
 * texts without a unit included) and CHOKAQ_OPTION_INVALID for one outside `limits`, which are checked after rounding.
 */
export function durationMs(value: Duration, name: string, limits: DurationLimits = {}): number {
  const exact = exactMs(value)
  const ms = Math.round(exact) + 0 // + 0 turns -0 into 0
  // Written so that NaN fails it. The sign is checked before rounding: -0.3 is negative, too.
  if (!(exact >= 0 && ms <= Number.MAX_SAFE_INTEGER)) {
    throw new ChokaQError('CHOKAQ_DURATION_INVALID', { name, value: shortValue(value) })
  }
  const { minMs = 0, maxMs = Number.MAX_SAFE_INTEGER } = limits
  if (ms < minMs || ms > maxMs) {
    throw new ChokaQError('CHOKAQ_OPTION_INVALID', { option: name, value: formatMs(ms), expected: limitsText(limits) })
  }
  return ms
}

function exactMs(value: unknown): number {
  if (typeof value === 'number') return value
  const match = typeof value === 'string' ? durationText.exec(value) : null
  if (match === null) return NaN
  return Number(match[1]) * unitMs[match[2] as Unit]
}

function limitsText({ minMs, maxMs }: DurationLimits): string {
  if (minMs === undefined) return `at most ${formatMs(maxMs ?? Number.MAX_SAFE_INTEGER)}`
  if (maxMs === undefined) return `at least ${formatMs(minMs)}`
  return `between ${formatMs(minMs)} and ${formatMs(maxMs)}`
}

/** A duration for people: '1m 30s', '15d', '1s 500ms', '0ms'. Exact to the millisecond; parts that are zero are left out. */
export function formatMs(ms: number): string {
  if (!Number.isFinite(ms)) return String(ms)
  let rest = Math.round(Math.abs(ms))
  const parts: string[] = []
  for (const [unit, size] of Object.entries(unitMs)) {
    const count = Math.floor(rest / size)
    if (count > 0) parts.push(`${count}${unit}`)
    rest -= count * size
  }
  if (parts.length === 0) return '0ms'
  return (ms < 0 ? '-' : '') + parts.join(' ')
}
