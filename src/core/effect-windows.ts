/** Boot arithmetic of effects: whether what a provider remembers, and when its reads are believed, fits the worker. */
import { keyStillSafe, settleAfterMs, windowMarginMs, type DoubtBounds } from './doubt.ts'
import { formatMs } from './duration.ts'
import type { ResolvedEffect } from './effect.ts'
import type { WindowFindings, WindowRule, Windows } from './windows.ts'

export const effectRules = ['window-over-margin', 'settle-after-owner', 'window-fits-lifetime'] as const
export type EffectRule = (typeof effectRules)[number]

interface Check {
  readonly rule: EffectRule & WindowRule
  readonly threatens: 'safety' | 'liveness'
  /** Written so that NaN does not hold. */
  readonly holds: (effect: ResolvedEffect, w: Windows) => boolean
  readonly text: (effect: ResolvedEffect, w: Windows) => string
}

function boundsOf(w: Windows): DoubtBounds {
  return { fenceAfterMs: w.fenceMs, deadAfterMs: w.deadMs, sweepMs: w.sweepMs }
}

/** How long after the first call a repeat can still be asked for: all the time that starts may take, and one attempt. */
function lastRepeatMs(w: Windows): number {
  return w.retryLifetimeMs + w.timeoutMs
}

function ownerEndsMs(effect: ResolvedEffect, w: Windows): number {
  return effect.callTimeoutMs + w.deadMs + w.sweepMs
}

const checks: readonly Check[] = [
  {
    rule: 'window-over-margin',
    threatens: 'safety',
    holds: (effect, w) =>
      effect.provider.keyed === undefined || effect.provider.keyed.windowMs > windowMarginMs(effect, boundsOf(w)),
    text: (effect, w) =>
      `${effect.provider.name} remembers a key for ${formatMs(effect.provider.keyed?.windowMs ?? 0)}, and a repeat needs a margin of ${formatMs(windowMarginMs(effect, boundsOf(w)))}: one call (${formatMs(effect.callTimeoutMs)}), the self-fence (${formatMs(w.fenceMs)}) and 1 % of the window. No repeat would ever be safe. Shorten callTimeout, or describe the provider with noKey.`,
  },
  {
    rule: 'settle-after-owner',
    threatens: 'safety',
    holds: (effect, w) =>
      effect.reconcile === undefined || settleAfterMs(effect, boundsOf(w)) >= ownerEndsMs(effect, w),
    text: (effect, w) =>
      `settleAfter (${formatMs(settleAfterMs(effect, boundsOf(w)))}) must be at least ${formatMs(ownerEndsMs(effect, w))}: one call (${formatMs(effect.callTimeoutMs)}), the dead time (${formatMs(w.deadMs)}) and a sweep (${formatMs(w.sweepMs)}). Else reconcile is believed while the call it looks for may still be on its way.`,
  },
  {
    rule: 'window-fits-lifetime',
    threatens: 'liveness',
    holds: (effect, w) =>
      effect.provider.keyed === undefined ||
      effect.reconcile !== undefined ||
      keyStillSafe(effect, lastRepeatMs(w), boundsOf(w)),
    text: (effect, w) =>
      `${effect.provider.name} remembers a key for ${formatMs(effect.provider.keyed?.windowMs ?? 0)} (less a margin of ${formatMs(windowMarginMs(effect, boundsOf(w)))}), and an attempt may still run ${formatMs(lastRepeatMs(w))} after the first. A doubt that is older waits for a person. Give the effect a reconcile, or the handler a shorter retry.for.`,
  },
]

/** Checks every rule for one effect. `scope` says where it belongs and opens each text. */
export function checkEffectWindows(effect: ResolvedEffect, w: Windows, scope: string): WindowFindings {
  const broken = checks.filter((check) => !check.holds(effect, w))
  const findings = (threatens: Check['threatens']): WindowFindings['refusals'] =>
    broken
      .filter((check) => check.threatens === threatens)
      .map(({ rule, text }) => ({ rule, text: `${scope}, effect "${effect.name}": ${text(effect, w)}` }))
  return { refusals: findings('safety'), warnings: findings('liveness') }
}
