/**
 * How an attempt ends, and what follows. The engine turns what a handler did into one `AttemptEnd`; `decide` turns it
 * into one settle action. Both unions are closed, so a new ending does not compile until it is handled.
 *
 * The rule of `whenInterrupted: 'review'` is here: every abnormal end after the start parks the job in doubt, because
 * nobody knows what the handler did. Only a typed NotExecuted or RetryAfter says that nothing happened.
 */
import { EffectDeclined, FatalError, NotExecuted, RetryAfter, ReviewNeeded } from './control-flow.ts'
import { unreachable } from './errors.ts'
import { describeFailure, type StoredFailure } from './failure.ts'
import type { DeadReason, NewJob } from './job.ts'
import { backoffMs, type RetryPolicy } from './retry-policy.ts'
import type { Keep, SettleAction } from './storage.ts'

export type AbortKind = 'timeout' | 'cancel' | 'shutdown' | 'lease-lost'

export type AttemptEnd =
  | {
      readonly kind: 'returned'
      readonly result: string | null
      readonly children: readonly NewJob[]
      /** Its effects were undone instead of its handler run. */
      readonly compensated?: true
    }
  /** An effect is in doubt and nothing but a person can tell. */
  | { readonly kind: 'parked'; readonly failure: StoredFailure }
  /** An effect is in doubt and is asked again after a while. */
  | { readonly kind: 'waiting'; readonly delayMs: number; readonly failure: StoredFailure }
  | { readonly kind: 'threw'; readonly thrown: unknown }
  /** The signal was aborted first; the handler then threw, or never ended and was abandoned. */
  | {
      readonly kind: 'aborted'
      readonly by: AbortKind
      readonly failure: StoredFailure
      /** What the handler threw in answer; undefined where it was abandoned. */
      readonly thrown: unknown
    }

/** What the decision needs to know of the job and its handler. */
export interface AttemptFacts {
  /** Failures charged before this attempt. */
  readonly failureCount: number
  readonly sinceFirstStartMs: number
  readonly whenInterrupted: 'resume' | 'review'
  readonly retry: RetryPolicy
  readonly markerLifeMs: number
  readonly keep: Keep
  /** The handler has effects: completing checks that none is in doubt. */
  readonly guarded?: boolean
  /** Uniform in [0, 1): the jitter of this decision. */
  readonly random: number
  /** Wall clock, for RetryAfter with a Date. */
  readonly nowMs: number
}

/** Refused before the handler ran: no attempt failed. */
export const refusals: ReadonlySet<DeadReason> = new Set<DeadReason>(['Rejected', 'EmptyKey', 'KeyReused'])

/** Whether a settlement of a started job says that its handler ran. */
export function endsAttempt(action: SettleAction): boolean {
  switch (action.kind) {
    case 'complete':
    case 'retry':
    case 'cancel':
      return true
    case 'bury':
      return !refusals.has(action.reason)
    case 'skip':
    case 'defer':
    case 'release':
      return false
    default:
      return unreachable(action, 'a settle action')
  }
}

/** What to settle; undefined where the lease is lost and there is nothing left to settle. */
export function decide(end: AttemptEnd, facts: AttemptFacts): SettleAction | undefined {
  switch (end.kind) {
    case 'returned':
      return {
        kind: 'complete',
        result: end.result,
        markerLifeMs: facts.markerLifeMs,
        keep: facts.keep,
        children: end.children,
        ...(facts.guarded === true ? { guard: true as const } : {}),
        ...(end.compensated === true ? { compensated: true as const } : {}),
      }
    case 'parked':
      return { kind: 'bury', reason: 'InDoubt', failure: end.failure, hold: true }
    case 'waiting':
      return decideWaiting(end, facts)
    case 'threw':
      return decideThrown(end.thrown, facts)
    case 'aborted':
      return decideAborted(end, facts)
    default:
      return unreachable(end, 'attempt end')
  }
}

function decideThrown(thrown: unknown, facts: AttemptFacts): SettleAction {
  const failure = describeFailure(thrown)
  if (thrown instanceof RetryAfter) {
    const delayMs = waitOf(thrown, facts.nowMs)
    if (facts.sinceFirstStartMs + delayMs > facts.retry.lifetimeMs) {
      return { kind: 'bury', reason: 'RetryLifetimeExpired', failure, hold: false }
    }
    return { kind: 'retry', delayMs, failure, charge: 'nothing', reason: 'retry-after' }
  }
  if (thrown instanceof ReviewNeeded) return { kind: 'bury', reason: 'ReviewRequested', failure, hold: true }
  if (thrown instanceof NotExecuted) return decideFailure(failure, facts, 'MaxRetriesExceeded', 'not-executed')
  if (thrown instanceof EffectDeclined) {
    return { kind: 'bury', reason: 'FatalError', failure, hold: false, terminalForMs: facts.markerLifeMs }
  }
  if (facts.whenInterrupted === 'review') return { kind: 'bury', reason: 'Interrupted', failure, hold: true }
  if (thrown instanceof FatalError) return { kind: 'bury', reason: 'FatalError', failure, hold: false }
  return decideFailure(failure, facts, 'MaxRetriesExceeded', 'failed')
}

/** Free, as a RetryAfter is; but where the lifetime is over, nobody will ask again, so a person must. */
function decideWaiting(end: Extract<AttemptEnd, { kind: 'waiting' }>, facts: AttemptFacts): SettleAction {
  const { delayMs, failure } = end
  if (facts.sinceFirstStartMs + delayMs > facts.retry.lifetimeMs) {
    return { kind: 'bury', reason: 'InDoubt', failure, hold: true }
  }
  return { kind: 'retry', delayMs, failure, charge: 'nothing', reason: 'retry-after' }
}

/** A wait is never NaN, whatever was done to the error after it was made. */
function waitOf(thrown: RetryAfter, nowMs: number): number {
  try {
    const delayMs = thrown.delayMs ?? (thrown.atMs ?? nowMs) - nowMs
    return delayMs > 0 && delayMs < Infinity ? delayMs : 0
  } catch {
    return 0 // a proxy whose traps throw
  }
}

function decideAborted(end: Extract<AttemptEnd, { kind: 'aborted' }>, facts: AttemptFacts): SettleAction | undefined {
  const { by, failure, thrown } = end
  // Typed proof that nothing happened counts after an abort as it does before one.
  const nothingDone = thrown instanceof NotExecuted || thrown instanceof RetryAfter
  const review = facts.whenInterrupted === 'review' && !nothingDone
  // The handler asks for a person: neither a timeout nor a shutdown may turn that into a retry.
  if (thrown instanceof ReviewNeeded && (by === 'timeout' || by === 'shutdown')) return decideThrown(thrown, facts)
  switch (by) {
    case 'lease-lost':
      return undefined
    case 'cancel':
      return { kind: 'cancel', hold: review }
    case 'shutdown':
      if (review) return { kind: 'bury', reason: 'Interrupted', failure, hold: true }
      return { kind: 'retry', delayMs: 0, failure, charge: 'nothing', reason: 'shutdown' }
    case 'timeout':
      if (review) return { kind: 'bury', reason: 'Interrupted', failure, hold: true }
      return decideFailure(failure, facts, 'Timeout', 'timeout')
    default:
      return unreachable(by, 'abort kind')
  }
}

function decideFailure(
  failure: StoredFailure,
  facts: AttemptFacts,
  exhausted: 'MaxRetriesExceeded' | 'Timeout',
  reason: 'failed' | 'timeout' | 'not-executed',
): SettleAction {
  const failures = facts.failureCount + 1
  if (failures >= facts.retry.attempts) return { kind: 'bury', reason: exhausted, failure, hold: false }
  const delayMs = backoffMs(facts.retry, failures, facts.random)
  if (facts.sinceFirstStartMs + delayMs > facts.retry.lifetimeMs) {
    return { kind: 'bury', reason: 'RetryLifetimeExpired', failure, hold: false }
  }
  return { kind: 'retry', delayMs, failure, charge: 'failure', reason }
}
