/** What the record of a dead job says about its calls: see storage/absence.ts. */
import type { DoubtfulCall, RecordedCalls } from '../../absence.ts'
import type { Session } from '../session.ts'

const lockInDoubt = `SELECT id::text AS id, name, item, greatest(0, chokaq.now_ms() - opened_at)::float8 AS "ageMs"
  FROM chokaq.effects WHERE key_ref = $1 AND generation = $2 AND state IN ('open', 'ambiguous')
  ORDER BY opened_at, id FOR UPDATE`
const selectAbsent = `SELECT bool_and(state = 'not-executed')::int AS absent FROM chokaq.effects
  WHERE key_ref = $1 AND generation = $2 AND kind = 'effect'`

/** Locks what is in doubt, so that no outcome comes between the look and the act. */
export async function callsOf(session: Session, keyHash: string | null, generation: number): Promise<RecordedCalls> {
  if (keyHash === null) return { inDoubt: [], areAbsent: false }
  const inDoubt = await session.all<DoubtfulCall>(lockInDoubt, keyHash, generation)
  const row = await session.get<{ readonly absent: number | null }>(selectAbsent, keyHash, generation)
  return { inDoubt, areAbsent: row?.absent === 1 }
}

const closeAbsent = `UPDATE chokaq.effects SET state = 'not-executed', closed_at = coalesce(closed_at, chokaq.now_ms())
  WHERE id = ANY($1::uuid[]) AND state IN ('open', 'ambiguous')`

/** open | ambiguous -> not-executed, by an operator's word. A late outcome is still evidence and closes it otherwise. */
export async function closeAsAbsent(session: Session, { inDoubt }: RecordedCalls): Promise<void> {
  if (inDoubt.length > 0) await session.all(closeAbsent, inDoubt.map(({ id }) => id).sort())
}
