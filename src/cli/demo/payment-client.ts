/** How a handler calls the payment providers, and what each answer means for the job. */
import { FatalError, RetryAfter } from '../../core/control-flow.ts'
import type { ProviderName } from './provider/names.ts'
import { callTimeoutMs } from './settings.ts'

export interface ChargeOrder {
  readonly provider: ProviderName
  readonly paymentAttemptId: string
  readonly amountCents: number
}

export interface ChargeOptions {
  readonly idempotencyKey: string
  readonly signal: AbortSignal
}

export const paymentErrorCodes = { serverError: 'PROVIDER_500', connectionCut: 'PROVIDER_CUT' } as const

/** The charge may or may not have been made. */
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
  async charge({ provider, ...order }: ChargeOrder, options: ChargeOptions): Promise<{ chargeId: string }> {
    const response = await this.#call(`${provider}/charges`, options.signal, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'idempotency-key': options.idempotencyKey,
        'x-worker': this.#worker,
      },
      body: JSON.stringify(order),
    })
    if (response.status === 409) throw new RetryAfter('150ms', 'the provider is still working on this key')
    const text = await response.text()
    if (response.status >= 500) {
      throw new PaymentUnknown(paymentErrorCodes.serverError, `the provider answered ${response.status}`)
    }
    if (!response.ok) throw new FatalError(`the provider refused the charge: ${response.status} ${text}`)
    return { chargeId: (JSON.parse(text) as { readonly id: string }).id }
  }

  /** What the bank says of a payment; it may not have heard of its own charge yet. Never charges. */
  async find(paymentAttemptId: string, signal: AbortSignal): Promise<{ chargeId: string } | undefined> {
    const query = new URLSearchParams({ paymentAttemptId })
    const response = await this.#call(`bank/charges?${query.toString()}`, signal, {})
    if (!response.ok) throw new PaymentUnknown(paymentErrorCodes.serverError, `the bank answered ${response.status}`)
    const { charges } = (await response.json()) as { readonly charges: readonly { readonly id: string }[] }
    const [charge] = charges
    return charge === undefined ? undefined : { chargeId: charge.id }
  }

  async #call(path: string, signal: AbortSignal, init: RequestInit): Promise<Response> {
    try {
      // What the effects declare as callTimeout holds for every call.
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(callTimeoutMs)])
      return await fetch(`${this.#baseUrl}/${path}`, { ...init, signal: bounded })
    } catch (cause) {
      signal.throwIfAborted()
      throw new PaymentUnknown(paymentErrorCodes.connectionCut, 'the connection broke before the answer', { cause })
    }
  }
}
