/** What a worker wrote down of a type when it started. Written by any version, so nothing about it is certain. */
import { lowerLevel, observedLevel, observedText, safetyLevel } from '../../core/checklist.ts'
import type { ObservedEffect } from '../../core/inspector.ts'
import { parseJson } from '../../core/json-image.ts'
import type { JobTypeRow } from '../../core/registration.ts'
import { sideEffectAnswers } from '../../core/handler.ts'
import type { ChecklistView } from '../wire.ts'

interface Answers {
  readonly [name: string]: unknown
}

export function answersOf(row: JobTypeRow): Answers {
  try {
    const value = parseJson(row.answers)
    return typeof value === 'object' && value !== null ? (value as Answers) : {}
  } catch {
    return {}
  }
}

export interface EffectAnswers {
  readonly name: string
  readonly provider: string
  readonly windowMs: number | null
  readonly takesKey: boolean
  readonly reconciles: boolean
  readonly compensates: boolean
}

export function effectAnswersOf(row: JobTypeRow | undefined): readonly EffectAnswers[] {
  const list = row === undefined ? [] : answersOf(row)['effects']
  if (!Array.isArray(list)) return []
  return (list as readonly unknown[]).map((each) => {
    const { name, provider, windowMs, takesKey, reconciles, compensates } = (each ?? {}) as Answers
    return {
      name: text(name),
      provider: text(provider),
      windowMs: count(windowMs),
      takesKey: takesKey === true,
      reconciles: reconciles === true,
      compensates: compensates === true,
    }
  })
}

export function checklistView(row: JobTypeRow, seen: readonly ObservedEffect[]): ChecklistView {
  const answers = answersOf(row)
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
    duplicateWindowMs: answers['key'] === 'payload' ? count(answers['duplicateWindowMs']) : null,
    whenInterrupted,
    level: lowerLevel(declaredLevel, observedLevel(named, seen)),
    declaredLevel,
    observed: observedText(seen) ?? null,
    markerLifeMs: isKeyed ? count(answers['markerLifeMs']) : null,
    allowRaw: row.allowRaw,
    effects: effects.map(({ name, provider }) => ({ name, provider })),
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}
