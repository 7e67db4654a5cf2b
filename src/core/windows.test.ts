import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { defaultRetryPolicy, maxTotalBackoffMs } from './retry-policy.ts'
import { applyWaivers, checkWindows, leaseSpanMs, markerLifeMs, windowRules, type Windows } from './windows.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** The defaults of the documentation. */
const defaults: Windows = {
  maxDelayMs: 30 * day,
  retryLifetimeMs: 20 * hour,
  timeoutMs: 15 * minute,
  graceMs: 3 * second,
  heartbeatMs: 5 * second,
  deadMs: 30 * second,
  sweepMs: 5 * second,
  statementDeadlineMs: 5 * second,
  fenceMs: 20 * second,
  attempts: 22,
  crashBudget: 2,
  dlqRetentionMs: 14 * day,
  archiveRetentionMs: 15 * day,
  duplicateWindowMs: 60 * day,
  resendForMs: hour,
  shutdownGraceMs: 20 * second,
  killDeadlineMs: 30 * second,
  maxBackoffTotalMs: maxTotalBackoffMs(defaultRetryPolicy),
  allowRaw: false,
  keepsCompleted: true,
}
const span = 20 * hour + 15 * minute + 38 * second

const rulesOf = (w: Windows): Readonly<Record<'refusals' | 'warnings', readonly string[]>> => {
  const { refusals, warnings } = checkWindows(w, 'worker')
  return { refusals: refusals.map(({ rule }) => rule), warnings: warnings.map(({ rule }) => rule) }
}

test('the defaults fit together', () => {
  expect(checkWindows(defaults, 'worker')).toEqual({ refusals: [], warnings: [] })
})

test('the life of a lease is A + T + G + D + S', () => {
  expect(leaseSpanMs(defaults)).toBe(span)
})

describe('the life of a marker', () => {
  test.each<[string, Partial<Windows>, number]>([
    ['the duplicate window, where it is longest', {}, 60 * day + span],
    ['the longest delay, where that is longest', { duplicateWindowMs: 0 }, 30 * day + span],
    ['the DLQ retention, where that is longest', { dlqRetentionMs: 90 * day }, 90 * day + span],
    ['all of them, where raw enqueue is allowed', { allowRaw: true }, (60 + 30 + 14) * day + 2 * span],
  ])('is %s', (_, change, ms) => {
    expect(markerLifeMs({ ...defaults, ...change })).toBe(ms)
  })

  test('outlives every duplicate, delayed job and dead job', () => {
    const times = fc.nat({ max: 90 * day })
    fc.assert(
      fc.property(times, times, times, fc.boolean(), (duplicateWindowMs, maxDelayMs, dlqRetentionMs, allowRaw) => {
        const w = { ...defaults, duplicateWindowMs, maxDelayMs, dlqRetentionMs, allowRaw }
        expect(markerLifeMs(w)).toBeGreaterThanOrEqual(Math.max(duplicateWindowMs, maxDelayMs, dlqRetentionMs) + span)
      }),
    )
  })
})

describe('each rule holds up to its border and breaks beyond it', () => {
  const need = 14 * day + span
  test.each<[string, 'refusals' | 'warnings', Partial<Windows>, Partial<Windows>]>([
    ['fence-before-dead', 'refusals', { fenceMs: 24_000 }, { fenceMs: 24_001 }],
    ['beats-before-fence', 'refusals', { heartbeatMs: 5_000 }, { heartbeatMs: 5_001 }],
    ['beats-before-fence', 'refusals', { fenceMs: 20_000 }, { fenceMs: 19_999 }],
    ['archive-outlives-resend', 'refusals', { archiveRetentionMs: need }, { archiveRetentionMs: need - 1 }],
    ['archive-outlives-resend', 'refusals', { resendForMs: 15 * day }, { resendForMs: 15 * day + 1 }],
    [
      'archive-outlives-resend',
      'refusals',
      { archiveRetentionMs: 0, keepsCompleted: false },
      { archiveRetentionMs: 0 },
    ],
    ['backoff-fits-lifetime', 'warnings', { maxBackoffTotalMs: 50_258_000 }, { maxBackoffTotalMs: 50_258_001 }],
    ['shutdown-before-kill', 'warnings', { killDeadlineMs: 28_001 }, { killDeadlineMs: 28_000 }],
  ])('%s', (rule, severity, good, bad) => {
    expect(rulesOf({ ...defaults, ...good })).toEqual({ refusals: [], warnings: [] })
    expect(rulesOf({ ...defaults, ...bad })).toEqual({ refusals: [], warnings: [], [severity]: [rule] })
  })

  test('a number that is none breaks every rule that needs it', () => {
    expect(rulesOf({ ...defaults, fenceMs: NaN }).refusals).toEqual(['fence-before-dead', 'beats-before-fence'])
    expect(rulesOf({ ...defaults, killDeadlineMs: NaN }).warnings).toEqual(['shutdown-before-kill'])
  })
})

describe('the texts name scope and numbers', () => {
  test.each<[Partial<Windows>, readonly string[]]>([
    [{ fenceMs: 25_000 }, ['(25s)', '24s', '(30s)', '(5s)']],
    [{ heartbeatMs: 5_500 }, ['(20s)', '21s', '(5s 500ms)', '(5s each)']],
    [{ archiveRetentionMs: day }, ['kept for 1d', '14d 20h 15m 38s', '(1h)', '(14d)', '(20h 15m 38s)']],
    [
      { retryLifetimeMs: hour },
      ['18h 54m 57s 100ms', '12h 52m 35s 100ms', '22 attempts', '2 crashes', '15m', 'after 1h'],
    ],
    [{ killDeadlineMs: 10_000 }, ['up to 28s', '20s', '3s', '5s', 'after 10s']],
  ])('%o', (change, parts) => {
    const { refusals, warnings } = checkWindows({ ...defaults, ...change }, 'type mail.v1')
    const [finding] = [...refusals, ...warnings]
    expect(finding?.text).toMatch(/^type mail\.v1: /)
    for (const part of parts) expect(finding?.text).toContain(part)
  })
})

describe('applyWaivers', () => {
  const broken = checkWindows({ ...defaults, fenceMs: 25_000, killDeadlineMs: 1 }, 'worker')

  test('changes nothing without waivers', () => {
    expect(applyWaivers(broken, {})).toEqual(broken)
  })

  test('a waived refusal becomes a warning that carries the reason', () => {
    const { refusals, warnings } = applyWaivers(broken, { 'fence-before-dead': ' one worker only ' })
    expect(refusals).toEqual([])
    expect(warnings.map(({ rule }) => rule)).toEqual(['fence-before-dead', 'shutdown-before-kill'])
    expect(warnings[0]?.text).toBe(`${broken.refusals[0]?.text} Waived: one worker only`)
    expect(warnings[1]).toEqual(broken.warnings[0])
  })

  test('a waived warning stays one and carries the reason', () => {
    const { refusals, warnings } = applyWaivers(broken, { 'shutdown-before-kill': 'killed by hand' })
    expect(refusals).toEqual(broken.refusals)
    expect(warnings.map(({ text }) => text)).toEqual([`${broken.warnings[0]?.text} Waived: killed by hand`])
  })

  test('a waiver for a rule that holds is allowed', () => {
    const none = { refusals: [], warnings: [] }
    expect(applyWaivers(none, Object.fromEntries(windowRules.map((rule) => [rule, 'because'])))).toEqual(none)
  })

  test.each<[string, Readonly<Record<string, unknown>>, string, string]>([
    [
      'an unknown rule',
      { 'fence-befor-dead': 'why' },
      'waiver-unknown',
      'waive names "fence-befor-dead", which is no rule; did you mean "fence-before-dead"?',
    ],
    [
      'a name that objects inherit',
      { constructor: 'why' },
      'waiver-unknown',
      `waive names "constructor", which is no rule; known: ${windowRules.join(', ')}`,
    ],
    [
      'a blank reason',
      { 'fence-before-dead': ' ' },
      'waiver-without-reason',
      'waive gives no reason for "fence-before-dead"; write why it is safe here',
    ],
    [
      'no text',
      { 'fence-before-dead': true },
      'waiver-without-reason',
      'waive gives no reason for "fence-before-dead"; write why it is safe here',
    ],
  ])('%s refuses on its own and waives nothing', (_, waive, rule, text) => {
    const { refusals, warnings } = applyWaivers(broken, waive as Readonly<Record<string, string>>)
    expect(refusals).toEqual([...broken.refusals, { rule, text }])
    expect(warnings).toEqual(broken.warnings)
  })

  test('what a waiver inherits does not count', () => {
    const inherited = Object.create({ 'fence-before-dead': 'why' }) as Readonly<Record<string, string>>
    expect(applyWaivers(broken, inherited)).toEqual(broken)
  })
})
