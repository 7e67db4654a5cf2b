/** How the provider misbehaves, and how long it takes: a pure function of the seed, so that a run can be repeated. */
import { createSeededRandom } from '../../../testing/seeded-random.ts'

export interface Behaviour {
  /** What goes wrong once the charge is made. The charge stands either way. */
  readonly fault: 'none' | 'error' | 'cut'
  readonly beforeChargeMs: number
  readonly afterChargeMs: number
}

const firstFaults = { error: 0.12, cut: 0.08 }
/** Repeats fail more seldom, so that retries come to an end. */
const repeatFaults = { error: 0.04, cut: 0.02 }

/** Some calls outlive the worker that made them, so that its successor meets a key in use. */
const slowShare = 0.15

/** `nth` counts the requests for one payment attempt, from 1, whatever keys they carry. */
export function behaviourOf(seed: number, paymentAttemptId: string, nth: number): Behaviour {
  const random = createSeededRandom(seed).fork(`provider ${paymentAttemptId} ${nth}`)
  const rates = nth === 1 ? firstFaults : repeatFaults
  const roll = random.next()
  const isSlow = random.chance(slowShare)
  return {
    fault: roll < rates.error ? 'error' : roll < rates.error + rates.cut ? 'cut' : 'none',
    beforeChargeMs: isSlow ? random.int(500, 900) : random.int(40, 180),
    afterChargeMs: random.int(40, 120),
  }
}
