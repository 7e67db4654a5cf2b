/** A type's answers as the Deck shows them. */
import { lowerLevel, observedLevel, observedText, safetyLevel } from '../../core/checklist.ts'
import type { ObservedEffect } from '../../core/inspector.ts'
import type { JobTypeRow } from '../../core/registration.ts'
import { sideEffectAnswers } from '../../core/handler.ts'
import { countAnswered, listAnswered, textAnswered, typeAnswers } from '../../core/type-answers.ts'
import type { ChecklistView } from '../wire.ts'

export interface EffectAnswers {
  readonly name: string
  readonly provider: string
  readonly windowMs: number | null
  readonly takesKey: boolean
  readonly reconciles: boolean
  readonly compensates: boolean
}

export function effectAnswersOf(row: JobTypeRow | undefined): readonly EffectAnswers[] {
  return listAnswered(typeAnswers(row), 'effects').map(
    ({ name, provider, windowMs, takesKey, reconciles, compensates }) => ({
      name: textAnswered(name),
      provider: textAnswered(provider),
      windowMs: countAnswered(windowMs),
      takesKey: takesKey === true,
      reconciles: reconciles === true,
      compensates: compensates === true,
    }),
  )
}

export function checklistView(row: JobTypeRow, seen: readonly ObservedEffect[]): ChecklistView {
  const answers = typeAnswers(row)
  const effects = effectAnswersOf(row)
  const sideEffects = textAnswered(answers['sideEffects'])
  const whenInterrupted = textAnswered(answers['whenInterrupted'])
  const known = Object.hasOwn(sideEffectAnswers, sideEffects)
    ? sideEffectAnswers[sideEffects as keyof typeof sideEffectAnswers]
    : ''
  const isKeyed = answers['key'] !== 'none'
  const named = { sideEffects, whenInterrupted, effects }
  const declaredLevel = safetyLevel(named)
  return {
    type: row.type,
    queue: row.queue,
    key: answers['key'] === 'payload' ? `of the payload, in ${row.keyScope}` : textAnswered(answers['key']),
    sideEffects,
    enforcedBy: typeof answers['because'] === 'string' ? answers['because'] : known,
    duplicateWindowMs: answers['key'] === 'payload' ? countAnswered(answers['duplicateWindowMs']) : null,
    whenInterrupted,
    level: lowerLevel(declaredLevel, observedLevel(named, seen)),
    declaredLevel,
    observed: observedText(seen) ?? null,
    markerLifeMs: isKeyed ? countAnswered(answers['markerLifeMs']) : null,
    allowRaw: row.allowRaw,
    effects: effects.map(({ name, provider }) => ({ name, provider })),
  }
}
