/** A type's answers as the Deck shows them. */
import { lowerLevel, observedLevel, observedText, safetyLevel } from '../../core/checklist.ts'
import type { ObservedEffect } from '../../core/inspector.ts'
import type { JobTypeRow } from '../../core/registration.ts'
import { sideEffectAnswers } from '../../core/handler.ts'
import { countAnswered, effectsAnswered, typeAnswers } from '../../core/type-answers.ts'
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
  return effectsAnswered(typeAnswers(row)).map(({ name, provider, windowMs, takesKey, reconciles, compensates }) => ({
    name: text(name),
    provider: text(provider),
    windowMs: countAnswered(windowMs),
    takesKey: takesKey === true,
    reconciles: reconciles === true,
    compensates: compensates === true,
  }))
}

export function checklistView(row: JobTypeRow, seen: readonly ObservedEffect[]): ChecklistView {
  const answers = typeAnswers(row)
  const effects = effectAnswersOf(row)
  const sideEffects = text(answers['sideEffects'])
  const whenInterrupted = text(answers['whenInterrupted'])
  const known = Object.hasOwn(sideEffectAnswers, sideEffects)
    ? sideEffectAnswers[sideEffects as keyof typeof sideEffectAnswers]
    : ''
  const isKeyed = answers['key'] !== 'none'
  const named = { sideEffects, whenInterrupted, effects }
  const declaredLevel = safetyLevel(named)
  return {
    type: row.type,
    queue: row.queue,
    key: answers['key'] === 'payload' ? `of the payload, in ${row.keyScope}` : text(answers['key']),
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

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
