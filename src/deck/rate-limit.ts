/** A token bucket for each name. Names come from outside, so only so many are remembered: the longest unused go first. */
import type { Clock } from '../core/runtime.ts'

interface Bucket {
  left: number
  atMs: number
}

const maxNames = 10_000

export class RateLimit {
  readonly #clock: Clock
  readonly #perMinute: number
  readonly #buckets = new Map<string, Bucket>()

  constructor(clock: Clock, perMinute: number) {
    this.#clock = clock
    this.#perMinute = perMinute
  }

  /** Takes one; false where none is left. */
  take(name: string): boolean {
    const bucket = this.#bucket(name)
    if (bucket.left < 1) return false
    bucket.left -= 1
    return true
  }

  /** Whether one could be taken. */
  allows(name: string): boolean {
    return this.#bucket(name).left >= 1
  }

  /** Until the next one, whole seconds. */
  waitSeconds(name: string): number {
    const missing = Math.max(0, 1 - this.#bucket(name).left)
    return Math.max(1, Math.ceil((missing * 60) / this.#perMinute))
  }

  #bucket(name: string): Bucket {
    const nowMs = this.#clock.monotonicMs()
    const known = this.#buckets.get(name)
    this.#buckets.delete(name)
    const left =
      known === undefined
        ? this.#perMinute
        : Math.min(this.#perMinute, known.left + ((nowMs - known.atMs) * this.#perMinute) / 60_000)
    const bucket = { left, atMs: nowMs }
    // Put last, so that the first of the map is the one that was not used for the longest time.
    this.#buckets.set(name, bucket)
    for (const [oldest] of this.#buckets) {
      if (this.#buckets.size <= maxNames) break
      this.#buckets.delete(oldest)
    }
    return bucket
  }
}
