/** The shop's web server: takes webhooks over HTTP and makes jobs of them. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ChokaQ } from '../../engine/enqueue/client.ts'
import { toNodeListener, verifyHmacSha256, webhook } from '../../http/index.ts'
import { amountOf, paymentAttemptOf } from './deliveries.ts'
import { chargeDelivery, chargeWithoutKey, type DeliveryPayload } from './jobs.ts'
import { signatureHeader } from './signature.ts'

export interface Receiver {
  readonly url: string
  close(): Promise<void>
}

export async function startReceiver(chokaq: ChokaQ, secret: string, isProtected: boolean): Promise<Receiver> {
  const verify = verifyHmacSha256({ secret, header: signatureHeader, prefix: 'sha256=' })
  const take = isProtected
    ? webhook({ chokaq, job: chargeDelivery, verify, payload: payloadOf })
    : unprotected(chokaq, verify)
  const server = createServer(toNodeListener(take))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`,
    close: () => closed(server),
  }
}

function payloadOf(raw: Uint8Array, headers: Headers): DeliveryPayload {
  const deliveryId = headers.get('x-github-delivery') ?? ''
  return {
    deliveryId,
    event: headers.get('x-github-event') ?? '',
    paymentAttemptId: paymentAttemptOf(deliveryId),
    amountCents: amountOf(deliveryId),
    webhook: JSON.parse(Buffer.from(raw).toString('utf8')) as Record<string, unknown>,
  }
}

/** A receiver as it is often written: signature, queue, 202. Nobody asked what a second delivery means. */
function unprotected(
  chokaq: ChokaQ,
  verify: (raw: Uint8Array, headers: Headers) => boolean | Promise<boolean>,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const raw = new Uint8Array(await request.arrayBuffer())
    if (!(await verify(raw, request.headers))) return new Response(null, { status: 401 })
    const { id, outcome } = await chokaq.enqueue(chargeWithoutKey, payloadOf(raw, request.headers))
    return Response.json({ id, outcome }, { status: 202 })
  }
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => {
    server.close(() => {
      resolve()
    })
  })
}
