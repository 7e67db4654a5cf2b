/**
 * What to do about an effect in doubt: pure, and in this order.
 *
 *   1. Repeat under the same provider key, while the provider certainly still remembers it and its stored answer is no
 *      replayed error.
 *   2. Ask `reconcile`: present → adopt; absent and old enough → run under the same key; unknown → wait, then review.
 *   3. A person.
 *
 * Without a provider key a call of a paused old owner can still arrive after `absent`. So `absent` is acted on only
 * where every call in doubt has certainly ended: its own attempt saw it end, or its worker is proven dead. Otherwise a
 * person decides.
 */
import type { ResolvedEffect } from './effect.ts'
import type { Intent } from './ledger.ts'

/** Bounds that come from the worker. */
export interface DoubtBounds {
  readonly fenceAfterMs: number
  readonly deadAfterMs: number
  readonly sweepMs: number
}

/** What the intents of one effect say together. */
export type Known =
  | { readonly kind: 'done'; readonly intent: Intent }
  | { readonly kind: 'terminal'; readonly intent: Intent }
  | { readonly kind: 'doubt'; readonly intents: readonly Intent[] }
  /** Every call before is proven not to have happened. */
  | { readonly kind: 'clear' }

export function readIntents(intents: readonly Intent[]): Known {
  const doubt = intents.filter(({ state }) => state === 'open' || state === 'ambiguous')
  const done = intents.find(({ state }) => state === 'done')
  if (done !== undefined) return { kind: 'done', intent: done }
  const terminal = intents.find(({ state }) => state === 'terminal')
  if (terminal !== undefined && doubt.length === 0) return { kind: 'terminal', intent: terminal }
  return doubt.length > 0 ? { kind: 'doubt', intents: doubt } : { kind: 'clear' }
}

/** m = Tp + F + 1 % of W: what a repeat may need before the provider sees it. */
export function windowMarginMs(effect: ResolvedEffect, bounds: Pick<DoubtBounds, 'fenceAfterMs'>): number {
  const windowMs = effect.provider.keyed?.windowMs ?? 0
  return effect.callTimeoutMs + bounds.fenceAfterMs + (Number.isFinite(windowMs) ? windowMs / 100 : 0)
}

/** Whether the same key is certainly still remembered by the provider, this long after the first intent. */
export function keyStillSafe(
  effect: ResolvedEffect,
  firstAgeMs: number,
  bounds: Pick<DoubtBounds, 'fenceAfterMs'>,
): boolean {
  if (effect.provider.keyed === undefined) return false
  return firstAgeMs <= effect.provider.keyed.windowMs - windowMarginMs(effect, bounds)
}

export function settleAfterMs(effect: ResolvedEffect, bounds: DoubtBounds): number {
  return effect.settleAfterMs ?? effect.callTimeoutMs + bounds.deadAfterMs + bounds.sweepMs
}

export type FirstStep = 'repeat' | 'reconcile' | 'review'

/** `firstAgeMs` counts from the effect's oldest intent, whatever became of it: the provider's window began there. */
export function firstStep(
  effect: ResolvedEffect,
  doubt: readonly Intent[],
  firstAgeMs: number,
  bounds: DoubtBounds,
): FirstStep {
  const replayed = doubt.some((intent) => intent.replayed)
  if (!replayed && keyStillSafe(effect, firstAgeMs, bounds)) return 'repeat'
  return effect.reconcile === undefined ? 'review' : 'reconcile'
}

export type AfterReconcile =
  | { readonly kind: 'repeat' }
  | { readonly kind: 'wait'; readonly delayMs: number }
  | { readonly kind: 'review'; readonly why: string }

const firstWaitMs = 5_000
const maxWaitMs = 300_000

/** After `reconcile` said `absent` or `unknown`. */
export function afterReconcile(
  found: 'absent' | 'unknown',
  effect: ResolvedEffect,
  doubt: readonly Intent[],
  bounds: DoubtBounds,
): AfterReconcile {
  const youngestMs = Math.min(...doubt.map(({ ageMs }) => ageMs))
  const oldestMs = Math.max(...doubt.map(({ ageMs }) => ageMs))
  const wait = (atLeastMs: number): AfterReconcile =>
    oldestMs > effect.reconcileForMs + settleAfterMs(effect, bounds)
      ? { kind: 'review', why: `reconcile has said ${found} for longer than reconcileFor` }
      : { kind: 'wait', delayMs: Math.min(maxWaitMs, Math.max(firstWaitMs, atLeastMs)) }
  if (found === 'unknown') return wait(youngestMs)
  const leftMs = settleAfterMs(effect, bounds) - youngestMs
  // An absence seen too early proves nothing: the provider's reads may lag behind its writes.
  if (leftMs > 0) return { kind: 'wait', delayMs: leftMs }
  if (effect.provider.keyed === undefined) {
    const unproven = doubt.filter((intent) => intent.state === 'open' && !intent.ownerGone)
    if (unproven.length > 0) {
      return {
        kind: 'review',
        why: 'reconcile said absent, but the worker that may still make the call is not proven dead and the provider takes no key',
      }
    }
  }
  return { kind: 'repeat' }
}
