/** Every job this worker owns right now, from fetch to settle. What is not here and yet owned is to be disowned. */
import type { FetchedJob } from '../core/job.ts'
import type { Lease } from '../core/lease.ts'
import type { AbortKind } from '../core/outcome.ts'

/** `stranded`: its handler ran and its outcome could not be stored; only the rescue after this worker may judge it. */
export type HeldPhase = 'buffered' | 'gate' | 'running' | 'settling' | 'stranded'

export interface HeldJob {
  readonly job: FetchedJob
  /** The incarnation of the worker that fetched it; another one's leases are lost. */
  readonly workerId: string
  readonly heldSinceMs: number
  phase: HeldPhase
  /** It counts among the running ones of its worker. */
  inSlot: boolean
  /** A cancel was asked for before its handler ran. */
  cancelRequested: boolean
  /** Its handler was called. */
  ran: boolean
  /** Set while its handler runs. */
  abort: ((by: AbortKind) => void) | undefined
}

export class InHand {
  readonly #held = new Set<HeldJob>()
  readonly #counts: Record<HeldPhase, number> = { buffered: 0, gate: 0, running: 0, settling: 0, stranded: 0 }

  add(held: HeldJob): void {
    this.#held.add(held)
    this.#counts[held.phase] += 1
  }

  move(held: HeldJob, phase: HeldPhase): void {
    if (!this.#held.has(held)) return
    this.#counts[held.phase] -= 1
    held.phase = phase
    this.#counts[phase] += 1
  }

  remove(held: HeldJob): void {
    if (this.#held.delete(held)) this.#counts[held.phase] -= 1
  }

  count(phase: HeldPhase): number {
    return this.#counts[phase]
  }

  get size(): number {
    return this.#held.size
  }

  /** True where nothing here will end by itself any more. */
  get idle(): boolean {
    return this.#held.size === this.#counts.stranded
  }

  leases(): readonly Lease[] {
    return Array.from(this.#held, (held) => held.job.lease)
  }

  byJobId(jobId: string): HeldJob | undefined {
    for (const held of this.#held) if (held.job.lease.jobId === jobId) return held
    return undefined
  }

  all(): readonly HeldJob[] {
    return [...this.#held]
  }
}
