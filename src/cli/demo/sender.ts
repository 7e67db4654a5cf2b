/** GitHub's part: sends each planned request, signed, and keeps a log of its own of what was answered. */
import { setTimeout as wait } from 'node:timers/promises'
import type { SentRequest } from './accounting.ts'
import type { PlannedDelivery } from './deliveries.ts'
import { sign, signatureHeader } from './signature.ts'

export interface SenderOptions {
  readonly url: string
  readonly secret: string
  readonly signal: AbortSignal
}

const maxTries = 6
const retryMs = 200

export class Sender {
  readonly log: SentRequest[] = []
  readonly #options: SenderOptions
  readonly #firsts = new Map<string, Promise<void>>()
  readonly #pending = new Set<Promise<void>>()

  constructor(options: SenderOptions) {
    this.#options = options
  }

  /** Sends the requests of one group at the same moment; does not wait for the answers. */
  send(group: readonly PlannedDelivery[]): void {
    for (const delivery of group) {
      const sent = this.#send(delivery)
      if (delivery.role === 'first') this.#firsts.set(delivery.deliveryId, sent)
      this.#pending.add(sent)
      void sent.finally(() => this.#pending.delete(sent))
    }
  }

  async allAnswered(): Promise<void> {
    await Promise.all(this.#pending)
  }

  async #send(delivery: PlannedDelivery): Promise<void> {
    const { deliveryId, role } = delivery
    // What comes "later" must not overtake the first request on a slow machine.
    if (role === 'soon' || role === 'changed') await this.#firsts.get(deliveryId)
    this.log.push({ deliveryId, role, outcome: await this.#outcomeOf(delivery) })
  }

  async #outcomeOf(delivery: PlannedDelivery): Promise<string> {
    for (let tries = 1; ; tries += 1) {
      const outcome = await this.#post(delivery)
      if (outcome !== undefined) return outcome
      if (tries === maxTries || this.#options.signal.aborted) return 'refused'
      await wait(retryMs * tries)
    }
  }

  /** What the receiver did with it; undefined where it did not take it. */
  async #post({ deliveryId, event, body }: PlannedDelivery): Promise<string | undefined> {
    const { url, secret, signal } = this.#options
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'GitHub-Hookshot/demo',
      'x-github-delivery': deliveryId,
      'x-github-event': event,
      [signatureHeader]: sign(secret, body),
    }
    try {
      const response = await fetch(url, { method: 'POST', headers, body, signal })
      const answer = await response.text()
      return response.ok ? (JSON.parse(answer) as { readonly outcome: string }).outcome : undefined
    } catch {
      // A lost answer: the sender cannot know, so it sends the same request again.
      return undefined
    }
  }
}
