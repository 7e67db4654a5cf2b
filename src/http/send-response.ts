/**
 * Writes a web response to Node's. A body that is there at once goes out as a whole, with its length; one that goes on
 * (an event stream, an export) goes out piece by piece, no faster than the client reads, and ends with the client.
 */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'

/** How much of a body nobody wants is still read, so that its sender gets to read the answer. */
const maxDiscardedBytes = 1_000_000

type Body = ReadableStream<Uint8Array>
type Reader = ReadableStreamDefaultReader<Uint8Array>
type Read = Awaited<ReturnType<Reader['read']>>

export async function sendResponse(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  response: Response,
): Promise<void> {
  const reader = (response.body as Body | null)?.getReader()
  if (reader === undefined) {
    sendWhole(incoming, outgoing, response, new Uint8Array())
    return
  }
  const drop = (): void => {
    reader.cancel().catch(() => undefined)
  }
  outgoing.once('close', drop)
  try {
    const begun = await beginningOf(reader)
    if (begun.rest === undefined) sendWhole(incoming, outgoing, response, begun.bytes)
    else await sendPieces(incoming, outgoing, response, reader, begun.bytes, begun.rest)
  } finally {
    outgoing.off('close', drop)
    drop()
  }
}

interface Beginning {
  readonly bytes: Uint8Array
  /** The read that is on its way, where the body did not end within this turn of the loop. */
  readonly rest: Promise<Read> | undefined
}

/** A body made of a text is all there in one turn of the loop; one that makes its caller wait is a stream. */
async function beginningOf(reader: Reader): Promise<Beginning> {
  let bytes = new Uint8Array()
  for (let pieces = 0; pieces < 2; pieces += 1) {
    const read = reader.read()
    // Rejections of a read that nobody waits for yet are seen where it is awaited.
    read.catch(() => undefined)
    const first = await Promise.race([read, nextTurn()])
    if (first === undefined) return { bytes, rest: read }
    if (first.done) return { bytes, rest: undefined }
    bytes = bytes.byteLength === 0 ? new Uint8Array(first.value) : joined(bytes, first.value)
  }
  return { bytes, rest: reader.read() }
}

function nextTurn(): Promise<undefined> {
  return new Promise((resolve) => {
    setImmediate(resolve, undefined)
  })
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(a.byteLength + b.byteLength)
  whole.set(a)
  whole.set(b, a.byteLength)
  return whole
}

/** Whether the answer may still be written: the client may be gone, and a middleware with a deadline may have answered. */
function isOpen(outgoing: ServerResponse): boolean {
  return !outgoing.destroyed && !outgoing.headersSent && !outgoing.writableEnded
}

export function sendWhole(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  response: Response,
  body: Uint8Array,
): void {
  if (!isOpen(outgoing)) return
  writeHead(outgoing, response)
  const hasBody = response.status !== 204 && response.status !== 304
  if (hasBody) outgoing.setHeader('content-length', body.byteLength)
  const sent = hasBody && incoming.method !== 'HEAD' ? body : undefined
  if (incoming.complete) outgoing.end(sent)
  else sendBeforeBodyEnds(incoming, outgoing, sent)
}

async function sendPieces(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  response: Response,
  reader: Reader,
  first: Uint8Array,
  rest: Promise<Read>,
): Promise<void> {
  if (!isOpen(outgoing)) return
  writeHead(outgoing, response)
  if (incoming.method === 'HEAD') {
    outgoing.end()
    return
  }
  outgoing.flushHeaders()
  if (!incoming.complete) incoming.resume()
  let next: Promise<Read> = rest
  let piece = first
  for (;;) {
    if (piece.byteLength > 0 && !outgoing.write(piece)) await drained(outgoing)
    if (outgoing.destroyed) return
    const read = await next
    if (read.done) {
      outgoing.end()
      return
    }
    piece = read.value
    next = reader.read()
    next.catch(() => undefined)
  }
}

/** When the client has read what it was sent, or has gone. */
async function drained(outgoing: ServerResponse): Promise<void> {
  if (outgoing.destroyed) return
  const over = new AbortController()
  const { signal } = over
  await Promise.race([once(outgoing, 'drain', { signal }), once(outgoing, 'close', { signal })]).catch(() => undefined)
  over.abort()
}

function writeHead(outgoing: ServerResponse, response: Response): void {
  outgoing.statusCode = response.status
  for (const [name, value] of response.headers) {
    if (name !== 'set-cookie') outgoing.setHeader(name, value)
  }
  const cookies = response.headers.getSetCookie()
  if (cookies.length > 0) outgoing.setHeader('set-cookie', cookies)
}

/**
 * The client is still sending what nobody wants. Closing at once would reset the connection and could take the answer with
 * it, so the rest is read and thrown away, within a limit; then the connection ends.
 */
function sendBeforeBodyEnds(incoming: IncomingMessage, outgoing: ServerResponse, body: Uint8Array | undefined): void {
  outgoing.setHeader('connection', 'close')
  if (body === undefined) outgoing.flushHeaders()
  else outgoing.write(body)
  let left = maxDiscardedBytes
  const finish = (): void => {
    if (!outgoing.writableEnded) outgoing.end()
  }
  incoming.on('data', (chunk: Uint8Array) => {
    left -= chunk.byteLength
    if (left < 0) finish()
  })
  for (const event of ['end', 'error', 'close']) incoming.once(event, finish)
  incoming.resume()
}
