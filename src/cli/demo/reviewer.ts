/**
 * The person of the demo: looks at what waits in review, reads the books of the provider that could not be asked, and
 * says what is true. With `chokaq review` it would be the same.
 */
import { unreachable } from '../../core/errors.ts'
import type { ChokaQ } from '../../engine/enqueue/client.ts'
import type { Review } from '../../engine/reviews.ts'
import { chargeDelivery } from './jobs.ts'
import { readLedger } from './provider/ledger.ts'

export interface ReviewerOptions {
  readonly chokaq: ChokaQ
  /** The provider's own file. */
  readonly ledger: string
  /** Payment attempts for which a request is still at work, whoever has hung up: their charge may yet come. */
  readonly working: () => Promise<readonly string[]>
  readonly onDecision: (decision: ReviewDecision) => void
}

export interface ReviewDecision {
  readonly paymentAttemptId: string
  readonly decision: 'adopt' | 'retry'
}

const actor = 'the demo'

export class Reviewer {
  readonly #options: ReviewerOptions

  constructor(options: ReviewerOptions) {
    this.#options = options
  }

  /** Decides what can be decided by now; gives how many still wait. */
  async look(): Promise<number> {
    const waiting = await this.#options.chokaq.reviews.list({ type: chargeDelivery.type })
    if (waiting.length === 0) return 0
    const working = new Set(await this.#options.working())
    let left = 0
    for (const review of waiting) {
      // A late call would make an answer of now a lie: the caller must be gone, and the provider at rest.
      const isSettled = review.ownerGone === true && !working.has(review.key)
      if (!isSettled || !(await this.#decide(review))) left += 1
    }
    return left
  }

  /** Whether it is decided now. */
  async #decide({ id, key, revision }: Review): Promise<boolean> {
    const { chokaq, ledger, onDecision } = this.#options
    const charge = readLedger(ledger).find(({ paymentAttemptId }) => paymentAttemptId === key)
    const { outcome } = await (charge === undefined
      ? chokaq.reviews.retry(id, { actor, note: 'not in the books', revision })
      : chokaq.reviews.adopt(id, { chargeId: charge.chargeId }, { actor, note: 'found in the books', revision }))
    switch (outcome) {
      case 'resolved':
        onDecision({ paymentAttemptId: key, decision: charge === undefined ? 'retry' : 'adopt' })
        return true
      case 'already-resolved':
        return true
      default:
        return unreachable(outcome, 'review outcome')
    }
  }
}
