/**
 * E-mail, messages and webhooks, as their documentation described them in 2026. What is marked "not verified" was not
 * found in a primary source. For SendGrid, Amazon SES, Postmark and Mailgun no idempotency key was found (which does not
 * prove that there is none): describe them with `noKey('ses')`, and a timeout of theirs is in doubt.
 */
import { statusOf, type Verdict } from '../classify.ts'
import type { Duration } from '../duration.ts'
import { defineProvider, noKey, type Provider } from '../provider.ts'

/**
 * Answers that come before anything was accepted: how HTTP APIs are built, and by no page of theirs verified. 409 says
 * that the same key is at work: that proves nothing.
 */
function refused(error: unknown): Verdict | undefined {
  const status = statusOf(error)
  if (status === 400 || status === 401 || status === 403 || status === 422 || status === 429) return 'not-executed'
  return undefined
}

/**
 * Resend. Header `Idempotency-Key`, 1 to 256 characters, 24 hours. 409 for another body under the key and for a
 * concurrent repeat; the first response is stored. Source: resend.com/docs, idempotency keys. What is stored after an error
 * is not verified.
 */
export const resend = defineProvider({
  name: 'resend',
  keyFormat: { maxLength: 256 },
  dedupeWindow: '24h',
  onProviderError: 'reexecuted',
  classify: refused,
})

/**
 * Brevo. Body `headers.idempotencyKey`, a UUID. The documentation has named 15 minutes (2021) and 30 minutes; the shorter
 * one is used here. Source: developers.brevo.com. What is stored after an error is not verified.
 */
export const brevo = defineProvider({
  name: 'brevo',
  keyFormat: { minLength: 36, maxLength: 36 },
  dedupeWindow: '15m',
  onProviderError: 'reexecuted',
  classify: refused,
})

/**
 * SparkPost. Header `Idempotency-Key`, 1 to 255 of [A-Za-z0-9._-], 24 hours (scheduled: 24 hours after the send time).
 * 409 code 1600 for another body, 1601 for a concurrent repeat; a replay says so in `X-Idempotent-Replayed`.
 * Source: the SparkPost API documentation. What is stored after an error is not verified.
 */
export const sparkpost = defineProvider({
  name: 'sparkpost',
  keyFormat: { maxLength: 255 },
  dedupeWindow: '24h',
  onProviderError: 'reexecuted',
  classify: refused,
})

/**
 * SQS and SNS FIFO. `MessageDeduplicationId`, at most 128 characters, a fixed window of 5 minutes, tracked even after the
 * message was received and deleted. Source: the AWS documentation, FIFO deduplication. What is kept after an error is not
 * verified; the call timeout is ours.
 */
export const sqsFifo = defineProvider({
  name: 'sqs-fifo',
  keyFormat: { maxLength: 128 },
  dedupeWindow: '5m',
  onProviderError: 'reexecuted',
  callTimeout: '30s',
  classify: refused,
})

/**
 * Twilio, REST (Messages create). No idempotency key is documented for it, so a repeat sends a second message. Error
 * 17534 ("Idempotency key payload mismatch") exists, but for which product is not verified.
 * Source: twilio.com/docs/api/errors.
 */
export const twilio = noKey('twilio', {
  classify(error) {
    const status = statusOf(error)
    if (status === 400 || status === 401 || status === 403 || status === 429) return 'not-executed'
    return undefined
  },
})

/**
 * A receiver of your outgoing webhooks: what *it* promises about repeated deliveries. Send the key in the header you
 * agreed on; without an agreement use `noKey`.
 *
 * @example
 * const partner = webhookReceiver({ header: 'Webhook-Id', dedupeWindow: '24h' })
 */
export function webhookReceiver(options: { header: string; dedupeWindow: Duration | 'forever' }): Provider & {
  readonly header: string
} {
  const provider = defineProvider({
    name: 'webhook',
    keyFormat: { maxLength: 255 },
    dedupeWindow: options.dedupeWindow,
    onProviderError: 'reexecuted',
    callTimeout: '30s',
    classify: (error) => (statusOf(error) === 429 ? 'not-executed' : undefined),
  })
  return Object.freeze({ ...provider, header: options.header })
}
