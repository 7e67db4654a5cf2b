/** The sentences about a job in review, the same on every page. */
import type { ReviewView } from '../../../../src/deck/wire-jobs.ts'

export function whatIsInDoubt({ effect, item }: Pick<ReviewView, 'effect' | 'item'>): string {
  if (effect === null) return 'the handler itself'
  return item === null || item === '' ? `effect ${effect}` : `effect ${effect} (${item})`
}

export function ownerWords(ownerGone: boolean): string {
  return ownerGone ? 'its worker is dead' : 'a late call may still arrive'
}

/** What to find out, by the reason of the job's death. */
export function questionFor(reason: string, hasEffect: boolean): string {
  if (hasEffect) return 'Ask the provider: did the call with this key or input act?'
  switch (reason) {
    case 'Interrupted':
    case 'Timeout':
      return 'Find out how far the handler got before it was cut off.'
    case 'FatalError':
      return 'Find out what the handler did before it threw.'
    case 'ReviewRequested':
      return 'The handler asked for a person. Its message says what it needs to know.'
    case 'CompleteConflict':
      return 'The handler finished, and another job had completed the same key. Find out whether the action happened twice.'
    default:
      return 'Find out whether the side effect of this job happened.'
  }
}
