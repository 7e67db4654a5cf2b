/** What a worker wrote down of a type when it started. Written by any version, so nothing about it is certain. */
import { parseJson } from './json-image.ts'
import type { JobTypeRow } from './registration.ts'

export interface TypeAnswers {
  readonly [name: string]: unknown
}

/** No answers where the type is unknown, or where what stands there is no object. */
export function typeAnswers(row: Pick<JobTypeRow, 'answers'> | undefined): TypeAnswers {
  if (row === undefined) return {}
  try {
    return fieldsOf(parseJson(row.answers))
  } catch {
    return {}
  }
}

/** What the answers list under a name, in order: each effect, each warning of the boot. */
export function listAnswered(answers: TypeAnswers, name: 'effects' | 'bootWarnings'): readonly TypeAnswers[] {
  const list = answers[name]
  return Array.isArray(list) ? (list as readonly unknown[]).map(fieldsOf) : []
}

export function textAnswered(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

export function countAnswered(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

function fieldsOf(value: unknown): TypeAnswers {
  return typeof value === 'object' && value !== null ? (value as TypeAnswers) : {}
}
