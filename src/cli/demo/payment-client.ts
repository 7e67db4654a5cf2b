/** How a handler calls the payment provider, and what each answer means for the job. */
import { FatalError, RetryAfter } from '../../core/control-flow.ts'

export interface ChargeOrder {
  readonly idempotencyKey: string
  readonly paymentAttemptId: string
  readonly amountCents: number
}

export const paymentErrorCodes = { serverError: 'PROVIDER_500', connectionCut: 'PROVIDER_CUT' } as const

/** The charge may or may not have been made: only the same key again can tell. */
export class PaymentUnknown extends Error {
  override readonly name = 'PaymentUnknown'
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

export class PaymentClient {
  readonly #baseUrl: string
  readonly #worker: string

  constructor(baseUrl: string, worker: string) {
    this.#baseUrl = baseUrl
    this.#worker = worker
  }

  /** The id of the charge. */
  async charge({ idempotencyKey, ...order }: ChargeOrder, signal: AbortSignal): Promise<string> {
    const response = await this.#post(idempotencyKey, order, signal)
    if (response.status === 409) throw new RetryAfter('150ms', 'the provider is still working on this key')
    const text = await response.text()
    if (response.status >= 500) {
      throw new PaymentUnknown(paymentErrorCodes.serverError, `the provider answered ${response.status}`)
    }
    if (!response.ok) throw new FatalError(`the provider refused the charge: ${response.status} ${text}`)
    return (JSON.parse(text) as { readonly id: string }).id
  }

  async #post(idempotencyKey: string, order: object, signal: AbortSignal): Promise<Response> {
    try {
      return await fetch(`${this.#baseUrl}/charges`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey, 'x-worker': this.#worker },
        body: JSON.stringify(order),
        signal,
      })
    } catch (cause) {
      signal.throwIfAborted()
      throw new PaymentUnknown(paymentErrorCodes.connectionCut, 'the connection broke before the answer', { cause })
    }
  }
}
