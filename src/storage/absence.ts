/**
 * A new operation of a job in doubt would act beside what may have happened. So it needs to be known that nothing did:
 * by the record, where every call of its effects was proven not executed, or by an operator's word, given no sooner than
 * a call that is still under way would be seen.
 */
import type { Absence, ResurrectRequest, ResurrectVerdict } from '../core/inspector.ts'

export interface DoubtfulCall {
  readonly id: string
  readonly name: string
  readonly item: string
  readonly ageMs: number
}

export interface RecordedCalls {
  /** Oldest first. */
  readonly inDoubt: readonly DoubtfulCall[]
  /** Calls of effects, and all of them are not executed. */
  readonly areAbsent: boolean
}

type Refusal = Extract<ResurrectVerdict, { readonly kind: 'not-absent' }>

/** Undefined where a new operation may begin. */
export function absenceRefusal(
  calls: RecordedCalls,
  isInDoubt: boolean,
  absence: Absence | undefined,
): Refusal | undefined {
  const { inDoubt, areAbsent } = calls
  if (inDoubt.length === 0 && (!isInDoubt || areAbsent)) return undefined
  const effects = [...new Set(inDoubt.map(({ name, item }) => (item === '' ? name : `${name} (${item})`)))]
  if (absence === undefined) return { kind: 'not-absent', effects, waitMs: undefined }
  const waitMs = Math.max(0, ...inDoubt.map(({ ageMs }) => absence.settleAfterMs - ageMs))
  return waitMs > 0 ? { kind: 'not-absent', effects, waitMs } : undefined
}

/** What the audit log keeps of it. */
export function absenceAudit({ inDoubt }: RecordedCalls, { mode, absence }: ResurrectRequest): object {
  if (mode === 'continue' || (absence === undefined && inDoubt.length === 0)) return {}
  return { absence: absence?.statement ?? null, inDoubt: inDoubt.map(({ name, item }) => ({ name, item })) }
}
