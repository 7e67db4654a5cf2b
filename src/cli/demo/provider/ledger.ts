/**
 * The payment provider's own books: one JSON line per charge, flushed before anybody hears of it. Nothing of ChokaQ
 * writes here, so what stands in this file is what customers paid.
 */
import { appendFileSync, closeSync, existsSync, fsyncSync, openSync, readFileSync } from 'node:fs'
import type { ProviderName } from './names.ts'

export interface Charge {
  readonly provider: ProviderName
  readonly chargeId: string
  /** '' where the provider takes no keys. */
  readonly idempotencyKey: string
  readonly paymentAttemptId: string
  readonly amountCents: number
  /** The worker process that asked for it. */
  readonly worker: string
}

export class Ledger {
  readonly #descriptor: number
  readonly #byKey = new Map<string, Charge>()
  #size = 0

  private constructor(path: string) {
    if (existsSync(path)) for (const charge of readLedger(path)) this.#remember(charge)
    this.#descriptor = openSync(path, 'a')
  }

  static open(path: string): Ledger {
    return new Ledger(path)
  }

  get size(): number {
    return this.#size
  }

  /** The charge that was made for a key: the stored answer to every repeat. */
  find(idempotencyKey: string): Charge | undefined {
    return this.#byKey.get(idempotencyKey)
  }

  record(charge: Charge): void {
    appendFileSync(this.#descriptor, `${JSON.stringify(charge)}\n`)
    fsyncSync(this.#descriptor)
    this.#remember(charge)
  }

  #remember(charge: Charge): void {
    this.#size += 1
    if (charge.idempotencyKey !== '') this.#byKey.set(charge.idempotencyKey, charge)
  }

  close(): void {
    closeSync(this.#descriptor)
  }
}

export function readLedger(path: string): readonly Charge[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Charge)
}
