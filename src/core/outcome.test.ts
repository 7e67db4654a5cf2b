import { describe, expect, test } from 'vitest'
import { FatalError, NotExecuted, RetryAfter, ReviewNeeded } from './control-flow.ts'
import { decide, type AbortKind, type AttemptEnd, type AttemptFacts } from './outcome.ts'
import { defaultRetryPolicy } from './retry-policy.ts'

const noJitter = { ...defaultRetryPolicy, jitter: 0 }
const facts: AttemptFacts = {
  failureCount: 0,
  sinceFirstStartMs: 0,
  whenInterrupted: 'resume',
  retry: noJitter,
  markerLifeMs: 7,
  keep: { kind: 'full' },
  random: 0.5,
  nowMs: 1_000_000,
}
const failure = { name: 'ChokaQError', message: 'aborted' }

const threw = (thrown: unknown): AttemptEnd => ({ kind: 'threw', thrown })
const aborted = (by: AbortKind, thrown?: unknown): AttemptEnd => ({ kind: 'aborted', by, failure, thrown })

const retry = (reason: string, delayMs: number, charge: 'failure' | 'nothing' = 'failure') => ({
  kind: 'retry',
  reason,
  delayMs,
  charge,
})
const bury = (reason: string, hold = false) => ({ kind: 'bury', reason, hold })

interface Row {
  readonly end: string
  readonly of: AttemptEnd
  readonly facts?: Partial<AttemptFacts>
  readonly action: object | undefined
}

const last = { failureCount: 21 }
const late = { sinceFirstStartMs: defaultRetryPolicy.lifetimeMs - 1_000 }

const resuming: readonly Row[] = [
  { end: 'an error', of: threw(new Error('no')), action: retry('failed', 3_000) },
  { end: 'the third error', of: threw(new Error('no')), facts: { failureCount: 2 }, action: retry('failed', 12_000) },
  { end: 'undefined', of: threw(undefined), action: retry('failed', 3_000) },
  { end: 'the last error', of: threw(new Error('no')), facts: last, action: bury('MaxRetriesExceeded') },
  {
    end: 'an error near the end of its lifetime',
    of: threw(new Error('no')),
    facts: late,
    action: bury('RetryLifetimeExpired'),
  },
  { end: 'FatalError', of: threw(new FatalError()), action: bury('FatalError') },
  { end: 'ReviewNeeded', of: threw(new ReviewNeeded('look')), action: bury('ReviewRequested', true) },
  { end: 'NotExecuted', of: threw(new NotExecuted()), action: retry('not-executed', 3_000) },
  { end: 'the last NotExecuted', of: threw(new NotExecuted()), facts: last, action: bury('MaxRetriesExceeded') },
  { end: 'RetryAfter of 10 s', of: threw(new RetryAfter('10s')), action: retry('retry-after', 10_000, 'nothing') },
  {
    end: 'RetryAfter, though it was the last',
    of: threw(new RetryAfter(0)),
    facts: last,
    action: retry('retry-after', 0, 'nothing'),
  },
  {
    end: 'RetryAfter a Date',
    of: threw(new RetryAfter(new Date(1_004_000))),
    action: retry('retry-after', 4_000, 'nothing'),
  },
  { end: 'RetryAfter a past Date', of: threw(new RetryAfter(new Date(0))), action: retry('retry-after', 0, 'nothing') },
  {
    end: 'RetryAfter beyond its lifetime',
    of: threw(new RetryAfter('2s')),
    facts: late,
    action: bury('RetryLifetimeExpired'),
  },
  {
    end: 'RetryAfter that was tampered with',
    of: threw(Object.assign(new RetryAfter('2s'), { delayMs: Number.NaN })),
    action: retry('retry-after', 0, 'nothing'),
  },
  { end: 'a lost lease', of: aborted('lease-lost'), action: undefined },
  { end: 'a cancel', of: aborted('cancel'), action: { kind: 'cancel', hold: false } },
  { end: 'a shutdown', of: aborted('shutdown'), action: retry('shutdown', 0, 'nothing') },
  {
    end: 'a shutdown, though it was the last',
    of: aborted('shutdown'),
    facts: last,
    action: retry('shutdown', 0, 'nothing'),
  },
  { end: 'a timeout', of: aborted('timeout'), action: retry('timeout', 3_000) },
  { end: 'the last timeout', of: aborted('timeout'), facts: last, action: bury('Timeout') },
  {
    end: 'a timeout near the end of its lifetime',
    of: aborted('timeout'),
    facts: late,
    action: bury('RetryLifetimeExpired'),
  },
  {
    end: 'a timeout answered with ReviewNeeded',
    of: aborted('timeout', new ReviewNeeded('look')),
    action: bury('ReviewRequested', true),
  },
  {
    end: 'a shutdown answered with ReviewNeeded',
    of: aborted('shutdown', new ReviewNeeded('look')),
    action: bury('ReviewRequested', true),
  },
  {
    end: 'a lost lease answered with ReviewNeeded',
    of: aborted('lease-lost', new ReviewNeeded('look')),
    action: undefined,
  },
]

/** Under review every abnormal end parks, except where typed proof says that nothing happened. */
const reviewed: readonly Row[] = [
  { end: 'an error', of: threw(new Error('no')), action: bury('Interrupted', true) },
  { end: 'FatalError', of: threw(new FatalError()), action: bury('Interrupted', true) },
  { end: 'ReviewNeeded', of: threw(new ReviewNeeded('look')), action: bury('ReviewRequested', true) },
  { end: 'NotExecuted', of: threw(new NotExecuted()), action: retry('not-executed', 3_000) },
  { end: 'RetryAfter', of: threw(new RetryAfter('1s')), action: retry('retry-after', 1_000, 'nothing') },
  { end: 'a timeout', of: aborted('timeout'), action: bury('Interrupted', true) },
  { end: 'a shutdown', of: aborted('shutdown'), action: bury('Interrupted', true) },
  { end: 'a cancel', of: aborted('cancel'), action: { kind: 'cancel', hold: true } },
  { end: 'a lost lease', of: aborted('lease-lost'), action: undefined },
  {
    end: 'a timeout answered with NotExecuted',
    of: aborted('timeout', new NotExecuted()),
    action: retry('timeout', 3_000),
  },
  {
    end: 'a shutdown answered with RetryAfter',
    of: aborted('shutdown', new RetryAfter(1)),
    action: retry('shutdown', 0, 'nothing'),
  },
  {
    end: 'a cancel answered with NotExecuted',
    of: aborted('cancel', new NotExecuted()),
    action: { kind: 'cancel', hold: false },
  },
]

function expectAction(action: unknown, wanted: object | undefined): void {
  if (wanted === undefined) expect(action).toBeUndefined()
  else expect(action).toMatchObject(wanted)
}

describe('decide', () => {
  test('a result completes with children, marker life and what is kept', () => {
    const end: AttemptEnd = { kind: 'returned', result: '1', children: [] }
    expect(decide(end, { ...facts, keep: { kind: 'stub', forMs: 5 } })).toEqual({
      kind: 'complete',
      result: '1',
      markerLifeMs: 7,
      keep: { kind: 'stub', forMs: 5 },
      children: [],
    })
  })

  test.each(resuming)('a handler that resumes, after $end', (row) => {
    expectAction(decide(row.of, { ...facts, ...row.facts }), row.action)
  })

  test.each(reviewed)('a handler under review, after $end', (row) => {
    expectAction(decide(row.of, { ...facts, ...row.facts, whenInterrupted: 'review' }), row.action)
  })

  test('records what was thrown, whatever it is', () => {
    expect(decide(threw('text'), facts)).toMatchObject({ failure: { message: 'text', thrown: 'string' } })
    expect(decide(aborted('timeout'), facts)).toMatchObject({ failure })
  })

  test('spreads the wait by the jitter of this decision', () => {
    const spread = { ...facts, retry: defaultRetryPolicy }
    expect(decide(threw(1), { ...spread, random: 0 })).toMatchObject({ delayMs: 2_700 })
    expect(decide(threw(1), { ...spread, random: 0.999_999 })).toMatchObject({ delayMs: 3_300 })
  })
})
