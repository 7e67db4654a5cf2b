/** What the tests of the receivers share: a signed delivery and a fresh database. */
import { createHmac } from 'node:crypto'
import { type ChokaQ, type CreateOptions, createChokaQ, defineJob } from 'chokaq'
import { verifyHmacSha256, webhook, type RequestHandler, type WebhookOptions } from 'chokaq/http'
import { sqlite } from 'chokaq/sqlite'
import { onTestFinished } from 'vitest'
import { z } from 'zod'

export const secret = 'a secret of the tests'
export const signatureHeader = 'x-hub-signature-256'
const url = 'http://receiver.test/hooks'

/** Keyed by the id of the event; the rest of the payload must be equal for a redelivery. */
export const eventReceived = defineJob({
  type: 'event.received.v1',
  payload: z.object({ deliveryId: z.string(), event: z.string(), amount: z.number() }),
  key: (p) => p.deliveryId,
  duplicateWindow: '7d',
})

/** A client on a database of its own that is closed with the test. */
export function openChokaQ(options: Partial<CreateOptions> = {}): ChokaQ {
  const chokaq = createChokaQ({ storage: sqlite(':memory:'), ...options })
  onTestFinished(() => chokaq.close())
  return chokaq
}

export function receiverOf(
  chokaq: ChokaQ,
  replace: Partial<WebhookOptions<typeof eventReceived.payload>> = {},
): RequestHandler {
  return webhook({
    chokaq,
    job: eventReceived,
    verify: verifyHmacSha256({ secret, header: signatureHeader, prefix: 'sha256=' }),
    payload: (raw, headers) => {
      const { event, amount } = JSON.parse(new TextDecoder().decode(raw)) as { event: string; amount: number }
      return { deliveryId: headers.get('x-delivery') ?? '', event, amount }
    },
    ...replace,
  })
}

export function sign(body: string | Uint8Array): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
}

/** The headers of a delivery whose signature is good. */
export function signedHeaders(deliveryId: string, body: string | Uint8Array): Record<string, string> {
  return { 'content-type': 'application/json', 'x-delivery': deliveryId, [signatureHeader]: sign(body) }
}

export const orderBody = JSON.stringify({ event: 'order.paid', amount: 12 })

/** A signed request, as a framework with web-standard requests hands it over. */
export function delivery(deliveryId: string, body = orderBody, headers: Record<string, string> = {}): Request {
  return new Request(url, { method: 'POST', body, headers: { ...signedHeaders(deliveryId, body), ...headers } })
}

/** How many jobs there are, by pillar. */
export async function counts(chokaq: ChokaQ): Promise<{ hot: number; archive: number; dlq: number }> {
  const [hot, archive, dlq] = await Promise.all(
    (['hot', 'archive', 'dlq'] as const).map(
      async (pillar) => (await chokaq.jobs.list(pillar, { limit: 500 })).jobs.length,
    ),
  )
  return { hot: hot ?? 0, archive: archive ?? 0, dlq: dlq ?? 0 }
}

export async function answerOf(response: Response): Promise<{ status: number; body: Record<string, unknown> }> {
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

/** A promise that the test settles. */
export function deferred<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let settle: ((value: T) => void) | undefined
  const promise = new Promise<T>((resolve) => {
    settle = resolve
  })
  return { promise, resolve: (value) => settle?.(value) }
}
