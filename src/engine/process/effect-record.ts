/** What is read off the record of an effect, in words and in errors. */
import { EffectDeclined } from '../../core/control-flow.ts'
import type { ResolvedEffect } from '../../core/effect.ts'
import { ChokaQError } from '../../core/errors.ts'
import { describeFailure } from '../../core/failure.ts'
import type { Intent } from '../../core/ledger.ts'

/** The same error again under the same key: the provider stored it and replays it, so repeating has no point. */
export function repeats(seen: readonly Intent[], key: string, thrown: unknown): boolean {
  const { message } = describeFailure(thrown)
  return seen.some(({ providerKey, failure }) => providerKey === key && failure?.message === message)
}

export function declined(effect: string, intent: Intent): EffectDeclined {
  return new EffectDeclined(effect, intent.failure?.message ?? 'declined', intent.failure?.code)
}

export function dropped(effect: string, error: unknown): ReturnType<typeof describeFailure> {
  return describeFailure(
    new ChokaQError('CHOKAQ_EFFECT_RESULT_DROPPED', { effect, problem: describeFailure(error).message }),
  )
}

export function why(effect: ResolvedEffect): string {
  return effect.provider.keyed === undefined
    ? `its call may have been made, ${effect.provider.name} takes no keys and the effect has no reconcile`
    : `its call may have been made, the time in which ${effect.provider.name} remembers its key is over (or its stored answer is an error) and the effect has no reconcile`
}
