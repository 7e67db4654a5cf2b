/**
 * Who is dead. A beat is a counter; dead is a worker whose counter stood still for D of the observer's own monotonic
 * time, over at least three successful reads. Wall clocks play no part, so a skewed or stepped one kills nobody.
 *
 * Everything starts anew after a storage error or a long gap of the observer's own loop: a database that was away, or a
 * laptop that slept, would otherwise kill every worker at once.
 */
import type { WorkerBeat } from '../../core/storage.ts'

interface Seen {
  beat: number
  sinceMs: number
  readCount: number
}

const minReadCount = 3
/** A gap of this many sweep intervals means that the observer itself was away. */
const gapFactor = 3

export class DeathWatch {
  readonly #deadAfterMs: number
  readonly #maxGapMs: number
  #seen = new Map<string, Seen>()
  #lastMs: number | undefined

  constructor(options: { readonly deadAfterMs: number; readonly sweepMs: number }) {
    this.#deadAfterMs = options.deadAfterMs
    this.#maxGapMs = gapFactor * options.sweepMs
  }

  /** Forgets all it saw: after a storage error. */
  restart(): void {
    this.#seen.clear()
    this.#lastMs = undefined
  }

  /** Takes one successful read; gives the ids of workers that are dead by silence. */
  observe(beats: readonly WorkerBeat[], nowMs: number): readonly string[] {
    if (this.#lastMs !== undefined && nowMs - this.#lastMs > this.#maxGapMs) this.restart()
    this.#lastMs = nowMs
    const next = new Map<string, Seen>()
    const dead: string[] = []
    for (const { workerId, beat } of beats) {
      const before = this.#seen.get(workerId)
      const seen =
        before?.beat === beat ? { ...before, readCount: before.readCount + 1 } : { beat, sinceMs: nowMs, readCount: 1 }
      next.set(workerId, seen)
      if (seen.readCount >= minReadCount && nowMs - seen.sinceMs >= this.#deadAfterMs) dead.push(workerId)
    }
    this.#seen = next
    return dead
  }
}
