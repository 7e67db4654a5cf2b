/**
 * Looks that read past the dead rows of a worker, and may be left out for a while.
 *
 * Each job leaves dead entries of its owner in the index of owned rows. While somebody holds an old snapshot they stay,
 * and whoever asks whether a worker owns anything reads all of them: 0.2 to 0.5 s for a million jobs. In the heartbeat
 * that would grow until it takes longer than a statement may, and a healthy worker would fence itself. So a look that was
 * slow, or failed, is left out until it costs a twentieth of the time. What it finds (a row whose fetch reply was lost, a
 * row whose owner has no row any more) is still there then.
 */
import type { Clock } from '../../core/runtime.ts'

const slowMs = 500
const restFactor = 20

export class DeadWalk {
  readonly #clock: Clock
  #dueAtMs = -Infinity
  #underWayCount = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Not while one is under way, which may be as slow as the statement's deadline. */
  get isDue(): boolean {
    return this.#underWayCount === 0 && this.#clock.monotonicMs() >= this.#dueAtMs
  }

  async take<T>(look: () => Promise<T>): Promise<T> {
    const startedMs = this.#clock.monotonicMs()
    this.#underWayCount += 1
    try {
      return await look()
    } finally {
      this.#underWayCount -= 1
      const nowMs = this.#clock.monotonicMs()
      const tookMs = nowMs - startedMs
      if (tookMs >= slowMs) this.#dueAtMs = nowMs + restFactor * tookMs
    }
  }
}
