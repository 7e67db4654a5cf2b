/** What the record of a dead job says about its calls: see storage/absence.ts. */
import type { DoubtfulCall, RecordedCalls } from '../../absence.ts'
import type { Transaction } from '../write-transaction.ts'

const selectInDoubt = `SELECT id, name, item, max(0, ? - opened_at) AS ageMs FROM chokaq_effects
  WHERE key_ref = ? AND generation = ? AND state IN ('open', 'ambiguous') ORDER BY opened_at, id`
const selectAbsent = `SELECT min(state = 'not-executed') AS absent FROM chokaq_effects
  WHERE key_ref = ? AND generation = ? AND kind = 'effect'`

export function callsOf({ session, nowMs }: Transaction, keyHash: string | null, generation: number): RecordedCalls {
  if (keyHash === null) return { inDoubt: [], areAbsent: false }
  const inDoubt = session.all<DoubtfulCall>(selectInDoubt, nowMs, keyHash, generation)
  const { absent } = session.get<{ readonly absent: number | null }>(selectAbsent, keyHash, generation) ?? {
    absent: null,
  }
  return { inDoubt, areAbsent: absent === 1 }
}

const closeAbsent = `UPDATE chokaq_effects SET state = 'not-executed', closed_at = coalesce(closed_at, ?)
  WHERE id = ? AND state IN ('open', 'ambiguous')`

/** open | ambiguous -> not-executed, by an operator's word. A late outcome is still evidence and closes it otherwise. */
export function closeAsAbsent({ session, nowMs }: Transaction, { inDoubt }: RecordedCalls): void {
  for (const { id } of inDoubt) session.run(closeAbsent, nowMs, id)
}
