import { describe, expect, it } from 'vitest'
import { classifyError, type Verdict } from '../classify.ts'
import { effectKey } from '../key-canon.ts'
import { renderKey, type Provider } from '../provider.ts'
import { brevo, resend, sparkpost, sqsFifo, twilio, webhookReceiver } from './messages.ts'
import { adyen, checkoutCom, mangopay, paypalOrders, paypalPayments, square, stripe } from './payments.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const partner = webhookReceiver({ header: 'Webhook-Id', dedupeWindow: '24h' })

const keyed: readonly [Provider, number, 'replayed' | 'reexecuted'][] = [
  [stripe, 24 * hour, 'replayed'],
  [paypalOrders, 6 * hour, 'reexecuted'],
  [paypalPayments, 45 * day, 'reexecuted'],
  [adyen, 7 * day, 'reexecuted'],
  [square, 24 * hour, 'reexecuted'],
  [checkoutCom, 24 * hour, 'reexecuted'],
  [mangopay, 24 * hour, 'replayed'],
  [resend, 24 * hour, 'reexecuted'],
  [brevo, 15 * minute, 'reexecuted'],
  [sparkpost, 24 * hour, 'reexecuted'],
  [sqsFifo, 5 * minute, 'reexecuted'],
  [partner, 24 * hour, 'reexecuted'],
]

describe.each(keyed.map(([provider, windowMs, onError]) => ({ name: provider.name, provider, windowMs, onError })))(
  'the description of $name',
  ({ provider, windowMs, onError }) => {
    it('has a key format that the rendered key fits', () => {
      const hash = (text: string): string => text.padEnd(64, 'a').replaceAll(/[^0-9a-f]/g, 'b')
      const key = renderKey(provider, effectKey({ jobId: 'j', generation: 1, name: 'effect' }, hash))
      expect(key.length).toBeGreaterThanOrEqual(provider.keyed?.format.minLength ?? Infinity)
      expect(key.length).toBeLessThanOrEqual(provider.keyed?.format.maxLength ?? 0)
      // The narrowest alphabet of all: letters, digits and hyphens.
      expect(key).toMatch(/^[0-9a-f-]+$/)
    })

    it('has the window and what a repeat gets after a server error', () => {
      expect(provider.keyed).toMatchObject({ windowMs, onProviderError: onError })
      expect(provider.callTimeoutMs).toBeLessThan(windowMs / 2)
    })

    it('takes a server error and a conflict for what nobody knows', () => {
      for (const status of [409, 500, 502, 503, 504]) {
        expect([status, classifyError({ status }, provider.classify)]).toEqual([status, 'ambiguous'])
      }
    })
  },
)

const issue = (name: string): object => ({ statusCode: 422, result: { details: [{ issue: name }] } })

describe('the classification of', () => {
  it.each<[string, Provider, unknown, Verdict]>([
    ['stripe 400', stripe, { statusCode: 400, type: 'StripeInvalidRequestError' }, 'not-executed'],
    ['stripe 400 of the key', stripe, { statusCode: 400, type: 'StripeIdempotencyError' }, 'ambiguous'],
    ['stripe 400 of the key, raw', stripe, { status: 400, type: 'idempotency_error' }, 'ambiguous'],
    ['stripe 401', stripe, { statusCode: 401 }, 'not-executed'],
    ['stripe 402', stripe, { statusCode: 402 }, 'terminal'],
    ['stripe 403', stripe, { statusCode: 403 }, 'not-executed'],
    ['stripe 429', stripe, { statusCode: 429 }, 'not-executed'],
    ['stripe declines', stripe, { type: 'StripeCardError' }, 'terminal'],
    ['stripe declines, raw', stripe, { type: 'card_error' }, 'terminal'],
    ['stripe gone', stripe, Object.assign(new Error('x'), { code: 'ECONNREFUSED' }), 'not-executed'],
    ['paypal 400', paypalOrders, { statusCode: 400 }, 'not-executed'],
    ['paypal 401', paypalPayments, { statusCode: 401 }, 'not-executed'],
    ['paypal declines', paypalOrders, issue('INSTRUMENT_DECLINED'), 'terminal'],
    [
      'paypal declines, by an HTTP client',
      paypalOrders,
      { response: { status: 422, data: { details: [{ issue: 'TRANSACTION_REFUSED' }] } } },
      'terminal',
    ],
    ['paypal has captured before', paypalOrders, issue('ORDER_ALREADY_CAPTURED'), 'ambiguous'],
    ['paypal has refunded before', paypalPayments, issue('CAPTURE_FULLY_REFUNDED'), 'ambiguous'],
    ['paypal 422 that cannot be read', paypalOrders, { statusCode: 422 }, 'ambiguous'],
    ['adyen 400', adyen, { statusCode: 400 }, 'not-executed'],
    ['adyen 422', adyen, { statusCode: 422 }, 'not-executed'],
    ['adyen 429', adyen, { statusCode: 429 }, 'not-executed'],
    ['square 400', square, { statusCode: 400 }, 'not-executed'],
    ['square 402', square, { statusCode: 402 }, 'terminal'],
    ['checkout.com 422', checkoutCom, { status: 422 }, 'not-executed'],
    ['checkout.com 429', checkoutCom, { status: 429 }, 'ambiguous'],
    ['checkout.com 401', checkoutCom, { status: 401 }, 'not-executed'],
    ['mangopay 400', mangopay, { status: 400 }, 'not-executed'],
    ['mangopay 409, its answer to a repeat', mangopay, { status: 409 }, 'ambiguous'],
    ['resend 422', resend, { statusCode: 422 }, 'not-executed'],
    ['resend 429', resend, { statusCode: 429 }, 'not-executed'],
    ['brevo 400', brevo, { statusCode: 400 }, 'not-executed'],
    ['sparkpost 403', sparkpost, { statusCode: 403 }, 'not-executed'],
    ['sqs 400', sqsFifo, { $metadata: { httpStatusCode: 400 } }, 'not-executed'],
    ['twilio 400', twilio, { status: 400 }, 'not-executed'],
    ['twilio 500', twilio, { status: 500 }, 'ambiguous'],
    ['a webhook 429', partner, { status: 429 }, 'not-executed'],
    ['a webhook 400, whose receiver may have acted', partner, { status: 400 }, 'ambiguous'],
  ])('%s', (_name, provider, error, verdict) => {
    expect(classifyError(error, provider.classify)).toBe(verdict)
  })

  it('a throwing getter proves nothing', () => {
    const error = Object.defineProperty({ statusCode: 422 }, 'result', {
      get() {
        throw new Error('no')
      },
    })
    expect(classifyError(error, paypalOrders.classify)).toBe('ambiguous')
  })
})

describe('a provider without keys', () => {
  it('says so, and a webhook receiver keeps its header', () => {
    expect(twilio.keyed).toBeUndefined()
    expect(partner.header).toBe('Webhook-Id')
  })
})
