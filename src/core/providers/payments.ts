/**
 * Payment providers, as their documentation described them in 2026. What is marked "not verified" was not found in a
 * primary source: check it against your own contract before you rely on it. A description only makes the engine more
 * careful or less; it never calls anybody.
 */
import { statusOf, type Verdict } from '../classify.ts'
import { defineProvider } from '../provider.ts'

function property(error: unknown, name: string): unknown {
  if (typeof error !== 'object' || error === null) return undefined
  try {
    return (error as Readonly<Record<string, unknown>>)[name]
  } catch {
    return undefined
  }
}

/** 401, 403 and 429 are answered before anything is executed: how HTTP APIs are built, and by no page of theirs verified. */
function refusedAtTheDoor(status: number | undefined): Verdict | undefined {
  return status === 401 || status === 403 || status === 429 ? 'not-executed' : undefined
}

/**
 * Stripe, API v1. Header `Idempotency-Key`, at most 255 characters, remembered for at least 24 hours and then pruned, so
 * that a later repeat is executed anew. The first status and body are stored once execution began, a 500 included; the
 * same key with other parameters is refused (400, `idempotency_error`); a concurrent one gets 409. A card error (402) is
 * final. Sources: docs.stripe.com/api/idempotent_requests, docs.stripe.com/api/errors. That every other 400 came before
 * execution is not verified.
 *
 * Pass `idempotencyKey` to every call yourself: the SDK's own automatic key is new for every call of yours.
 */
export const stripe = defineProvider({
  name: 'stripe',
  keyFormat: { maxLength: 255 },
  dedupeWindow: '24h',
  onProviderError: 'replayed',
  classify(error) {
    const type = property(error, 'type')
    // A card error is Stripe's final word on this attempt: https://docs.stripe.com/api/errors
    if (type === 'StripeCardError' || type === 'card_error') return 'terminal'
    const status = statusOf(error)
    if (status === 402) return 'terminal'
    // 409: the same key is being executed right now. 400 idempotency_error: our own input changed; nobody repeats it.
    if (status === 400 && type !== 'StripeIdempotencyError' && type !== 'idempotency_error') return 'not-executed'
    return refusedAtTheDoor(status)
  },
})

/**
 * PayPal Orders v2. Header `PayPal-Request-Id`, 1 to 108 characters, remembered for 6 hours (up to 72 by agreement). A
 * repeat answers with the latest status of the first request; of two concurrent ones the second may fail.
 * Source: the OpenAPI description of Orders v2. What is stored after an error is not verified, nor that a 400 came before
 * execution and that a 422 is final.
 */
export const paypalOrders = defineProvider({
  name: 'paypal-orders',
  keyFormat: { maxLength: 108 },
  dedupeWindow: '6h',
  onProviderError: 'reexecuted',
  classify: classifyPaypal,
})

/**
 * PayPal Payments v2 (capture, refund, void). Header `PayPal-Request-Id`, 1 to 108 characters, remembered for 45 days.
 * Source: the OpenAPI description of Payments v2. Not verified: what is stored after an error, that a 400 came before
 * execution, and that a 422 is final.
 */
export const paypalPayments = defineProvider({
  name: 'paypal-payments',
  keyFormat: { maxLength: 108 },
  dedupeWindow: '45d',
  onProviderError: 'reexecuted',
  classify: classifyPaypal,
})

function classifyPaypal(error: unknown): Verdict | undefined {
  const status = statusOf(error)
  if (status === 422) return classifyIssues(issuesOf(error))
  if (status === 400) return 'not-executed'
  return refusedAtTheDoor(status)
}

/**
 * 422 UNPROCESSABLE_ENTITY is the business answer, but "already captured" may be the echo of our own first call: that
 * proves nothing. Nor does an answer whose issue cannot be read.
 */
function classifyIssues(issues: readonly string[]): Verdict {
  const isEcho = issues.some((issue) => /ALREADY|PREVIOUS|DUPLICATE|FULLY_REFUNDED/.test(issue))
  return issues.length > 0 && !isEcho ? 'terminal' : 'ambiguous'
}

/** `details[].issue` of the body, wherever an HTTP client or the SDK keeps that. */
function issuesOf(error: unknown): readonly string[] {
  const response = property(error, 'response')
  for (const place of [error, property(error, 'result'), property(error, 'body'), property(response, 'data')]) {
    const details = property(place, 'details')
    if (!Array.isArray(details)) continue
    const issues = details.map((detail: unknown) => property(detail, 'issue'))
    return issues.filter((issue) => typeof issue === 'string')
  }
  return []
}

/**
 * Adyen. Header `Idempotency-Key`, at most 64 characters, per company account and not across regions. The documentation
 * has named at least 31 days and, on another page, 7 (not verified): the shorter one is used here.
 * Source: docs.adyen.com, API idempotency. Not verified: what is stored after an error, and that a 400 or 422 came before
 * execution.
 */
export const adyen = defineProvider({
  name: 'adyen',
  keyFormat: { maxLength: 64 },
  dedupeWindow: '7d',
  onProviderError: 'reexecuted',
  classify(error) {
    const status = statusOf(error)
    if (status === 400 || status === 422) return 'not-executed'
    return refusedAtTheDoor(status)
  },
})

/**
 * Square. Body field `idempotency_key`, at most 45 characters. The first successful response is stored; reuse with other
 * parameters answers `IDEMPOTENCY_KEY_REUSED`. The window is not documented (not verified): one day is assumed.
 * Source: developer.squareup.com, idempotency. The length is that of refunds. Not verified: that a 402 is final, and that a
 * 400 came before execution.
 */
export const square = defineProvider({
  name: 'square',
  keyFormat: { maxLength: 45 },
  dedupeWindow: '24h',
  onProviderError: 'reexecuted',
  classify(error) {
    const status = statusOf(error)
    if (status === 402) return 'terminal'
    if (status === 400) return 'not-executed'
    return refusedAtTheDoor(status)
  },
})

/**
 * Checkout.com. Header `Cko-Idempotency-Key`, remembered for 24 hours (a sandbox has used 120 seconds). Only 2xx answers
 * are stored: a 4xx or 5xx is executed again. A concurrent repeat gets 429 and should wait 30 seconds.
 * Source: the Checkout.com documentation, idempotency. Not verified: the key's length, and that a 422 came before execution.
 */
export const checkoutCom = defineProvider({
  name: 'checkout.com',
  keyFormat: { maxLength: 36 },
  dedupeWindow: '24h',
  onProviderError: 'reexecuted',
  classify(error) {
    const status = statusOf(error)
    // 429 may also mean that the first call is still running, so it proves nothing here.
    if (status === 429) return 'ambiguous'
    if (status === 422) return 'not-executed'
    return refusedAtTheDoor(status)
  },
})

/**
 * Mangopay. Header `Idempotency-Key`, 16 to 36 letters, digits and hyphens, remembered for 24 hours. A repeat answers
 * 409 and the original must be fetched separately: give the effect a `reconcile` that does.
 * Source: docs.mangopay.com, idempotency. Not verified: what is stored after an error, and that a 400 came before execution.
 */
export const mangopay = defineProvider({
  name: 'mangopay',
  keyFormat: { minLength: 16, maxLength: 36 },
  dedupeWindow: '24h',
  onProviderError: 'replayed',
  classify(error) {
    const status = statusOf(error)
    if (status === 400) return 'not-executed'
    return refusedAtTheDoor(status)
  },
})
