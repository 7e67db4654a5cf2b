/** How a provider misbehaves, and how long it takes: a pure function of the seed, so that a run can be repeated. */
import { createSeededRandom } from '../../../testing/seeded-random.ts'
import type { ProviderName } from './names.ts'

export interface Behaviour {
  /**
   * What goes wrong. `lost`: the connection breaks before anything is charged. The others strike once the charge is
   * made: it stands either way. The caller cannot tell `lost` from `cut`.
   */
  readonly fault: 'none' | 'error' | 'cut' | 'lost'
  readonly beforeChargeMs: number
  readonly afterChargeMs: number
}

interface Rates {
  readonly error: number
  readonly cut: number
  readonly lost: number
}

const firstFaults: Readonly<Record<ProviderName, Rates>> = {
  card: { error: 0.12, cut: 0.08, lost: 0.03 },
  // The demo is about doubt, so the two without keys give more of it.
  bank: { error: 0.08, cut: 0.12, lost: 0.1 },
  voucher: { error: 0.08, cut: 0.12, lost: 0.1 },
}
/** Repeats fail more seldom, so that retries come to an end. */
const repeatFaults: Rates = { error: 0.04, cut: 0.02, lost: 0.01 }

/** Some calls outlive the worker that made them, so that its successor meets a key in use. */
const slowShare = 0.15

/** `nth` counts the requests for one payment attempt, from 1, whatever keys they carry. */
export function behaviourOf(
  seed: number,
  paymentAttemptId: string,
  nth: number,
  provider: ProviderName = 'card',
): Behaviour {
  const random = createSeededRandom(seed).fork(`provider ${paymentAttemptId} ${nth}`)
  const rates = nth === 1 ? firstFaults[provider] : repeatFaults
  const fault = faultOf(random.next(), rates)
  const isSlow = random.chance(slowShare)
  return {
    fault,
    beforeChargeMs: isSlow ? random.int(500, 900) : random.int(40, 180),
    afterChargeMs: random.int(40, 120),
  }
}

function faultOf(roll: number, { error, cut, lost }: Rates): Behaviour['fault'] {
  if (roll < error) return 'error'
  if (roll < error + cut) return 'cut'
  return roll < error + cut + lost ? 'lost' : 'none'
}

/** How long a charge of the bank is missing from what its read API tells. */
export function readLagMs(seed: number, paymentAttemptId: string): number {
  return createSeededRandom(seed).fork(`read lag ${paymentAttemptId}`).int(300, 1_500)
}
