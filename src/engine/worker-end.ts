/** How a job leaves the hands of a worker: what is settled, and what its events tell. */
import type { SettleAction } from '../core/storage.ts'
import type { GateResult } from './fetch/gate.ts'
import type { HeldJob } from './in-hand.ts'

export interface JobEnd {
  readonly action: SettleAction
  readonly attempt: number
  readonly durationMs: number
  /** For `job.released`. */
  readonly why: string
}

/** What becomes of a job whose handler is not called. */
export function notRun(held: HeldJob, gate: Exclude<GateResult, { kind: 'lost' }>, stopping: boolean): JobEnd {
  const { attempt } = held.job
  const end = (action: SettleAction, why: string): JobEnd => ({ action, attempt, durationMs: 0, why })
  if (gate.kind === 'settle') return end(gate.action, 'paused')
  if (held.cancelRequested) return end({ kind: 'cancel', hold: false }, '')
  return end({ kind: 'release' }, stopping ? 'shutdown' : 'the last confirmed beat is too old')
}
