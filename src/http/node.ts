/** From Node's request and response to the web's: for node:http, Express, and Fastify's raw pair. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { sendResponse, sendWhole } from './send-response.ts'

/** What only the server knows of a request. */
export interface RequestInfo {
  /** The other end of the connection: the client, or the last proxy before this process. */
  readonly remoteAddress?: string
}

/** A web-standard handler, with what Node knows besides. */
export type NodeRequestHandler = (request: Request, info: RequestInfo) => Promise<Response>

export type NodeListener = (request: IncomingMessage, response: ServerResponse) => void

export interface NodeListenerOptions {
  /** Hears an error of the handler, which is answered with 500. The receivers of this package throw none. */
  onError?: (error: unknown) => void
}

/** What Express, its body parsers and cloud platforms hang on a request. */
interface KnownExtras {
  readonly originalUrl?: unknown
  readonly body?: unknown
  readonly rawBody?: unknown
}

/**
 * Serves a web-standard handler from node:http, Express or Fastify. A body that goes on (an event stream) is passed on as
 * it comes, and cancelled when the client goes.
 *
 * A receiver verifies raw bytes, so mount it before any body parser. Raw bytes that somebody else kept are used:
 * `request.body` of `express.raw()`, `request.rawBody` of cloud platforms. A body that a parser consumed is answered with
 * 500 `body-consumed`.
 *
 * @example
 * createServer(toNodeListener(handler)).listen(3000) // node:http
 * app.post('/hooks/orders', toNodeListener(handler)) // Express, above app.use(express.json())
 */
export function toNodeListener(handler: NodeRequestHandler, options: NodeListenerOptions = {}): NodeListener {
  return (incoming, outgoing) => {
    serve(handler, incoming, outgoing).catch((error: unknown) => {
      try {
        options.onError?.(error)
      } catch {
        // A log that fails must not leave the client waiting.
      }
      if (outgoing.headersSent || outgoing.destroyed) outgoing.destroy()
      else sendWhole(incoming, outgoing, new Response(null, { status: 500 }), new Uint8Array())
    })
  }
}

async function serve(handler: NodeRequestHandler, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const gone = new AbortController()
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) gone.abort()
  })
  const request = toRequest(incoming, gone.signal)
  const { remoteAddress } = incoming.socket
  const info: RequestInfo = remoteAddress === undefined ? {} : { remoteAddress }
  const response = request === undefined ? new Response(null, { status: 400 }) : await handler(request, info)
  await sendResponse(incoming, outgoing, response)
}

/** Undefined where the web has no such request: a method, target or header that it forbids. */
function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request | undefined {
  const { originalUrl } = incoming as KnownExtras
  const target = typeof originalUrl === 'string' ? originalUrl : (incoming.url ?? '/')
  const isEncrypted = 'encrypted' in incoming.socket
  const origin = `${isEncrypted ? 'https' : 'http'}://${incoming.headers.host ?? 'localhost'}`
  try {
    const url = target.startsWith('/') ? origin + target : target
    const method = incoming.method ?? 'GET'
    const init = { method, headers: toHeaders(incoming), signal }
    if (method === 'GET' || method === 'HEAD') return new Request(url, init)
    return withBody(incoming, url, init)
  } catch {
    return undefined
  }
}

function withBody(
  incoming: IncomingMessage,
  url: string,
  init: { readonly method: string; readonly headers: Headers; readonly signal: AbortSignal },
): Request {
  const { body, rawBody } = incoming as KnownExtras
  const kept = [rawBody, body].find((each) => each instanceof Uint8Array)
  if (kept !== undefined) return new Request(url, { ...init, body: kept })
  const request = new Request(url, { ...init, body: bodyStream(incoming), duplex: 'half' })
  // Somebody read from it: the receiver sees a used body and says what to change.
  if (incoming.readableDidRead || incoming.readableEnded) markUsed(request)
  return request
}

function markUsed(request: Request): void {
  request.body?.cancel().catch(() => undefined)
}

function toHeaders({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers()
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2)
    // The pseudo headers of HTTP/2 are no headers of the web.
    if (!name.startsWith(':')) headers.append(name, value)
  }
  return headers
}

/** Reads only when asked, and leaves the connection alone when it is dropped: the answer still has to go out. */
function bodyStream(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  const chunks = incoming.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array, undefined>
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next()
        if (done === true) controller.close()
        else controller.enqueue(new Uint8Array(value))
      },
      async cancel() {
        await chunks.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}
