// Says which invariants of a job queue a run has broken; an empty list means none. Each is a pure function of the
// evidence, and checker.test.ts plants a violation of each.
import { Evidence, type Rules } from './evidence.ts'
import type { Line } from './history.ts'
import { acceptance } from './invariants/acceptance.ts'
import { attempts } from './invariants/attempts.ts'
import { ownership } from './invariants/ownership.ts'
import { time } from './invariants/time.ts'
import type { Snapshot } from './snapshot.ts'

export type { Rules } from './evidence.ts'

export type Invariant = (evidence: Evidence) => readonly string[]

export const invariants: Readonly<Record<string, Invariant>> = { ...acceptance, ...ownership, ...attempts, ...time }

export function check(history: readonly Line[], snapshot: Snapshot, rules: Rules = {}): readonly string[] {
  const evidence = new Evidence(history, snapshot, rules)
  return Object.entries(invariants).flatMap(([name, holds]) => holds(evidence).map((what) => `${name}: ${what}`))
}
