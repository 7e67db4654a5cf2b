/** The other side: it drops repeats by their id, and waits for what is missing before it acts on what came early. */
import type { Change, Receiver } from './handler.ts'

export class OrderedReceiver implements Receiver {
  readonly applied: string[] = []
  readonly #seen = new Set<string>()
  readonly #next = new Map<string, number>()
  readonly #early = new Map<string, Change>()
  arrivals = 0
  repeats = 0

  async deliver(messageId: string, change: Change): Promise<void> {
    this.arrivals += 1
    if (this.#seen.has(messageId)) {
      this.repeats += 1
      return
    }
    // In one transaction with what is applied, where the receiver has a database.
    this.#seen.add(messageId)
    this.#early.set(`${change.orderId} ${change.sequence}`, change)
    this.#applyInOrder(change.orderId)
  }

  #applyInOrder(orderId: string): void {
    for (;;) {
      const sequence = this.#next.get(orderId) ?? 1
      const due = this.#early.get(`${orderId} ${sequence}`)
      if (due === undefined) return
      this.#early.delete(`${orderId} ${sequence}`)
      this.#next.set(orderId, sequence + 1)
      this.applied.push(`${orderId} ${due.status}`)
    }
  }
}
