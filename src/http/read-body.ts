import { ChokaQError } from '../core/errors.ts'
import { Refusal, tooLarge } from './problem.ts'

/** The largest body a receiver takes where nothing else is said, bytes. */
export const defaultMaxBodyBytes = 1_000_000

/**
 * The raw bytes of a request, at most `maxBytes`. What arrives is counted, whatever Content-Length says; the rest of a
 * body that is too large is not read.
 *
 * @throws Refusal: 413 too large, 400 the sender broke off, 500 somebody read the body before
 */
export async function readBody(request: Request, maxBytes: number): Promise<Uint8Array> {
  if (request.bodyUsed) throw consumed()
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw new Refusal(tooLarge(maxBytes))
  if (request.body === null) return new Uint8Array()
  const reader = (request.body as ReadableStream<Uint8Array>).getReader()
  const chunks: Uint8Array[] = []
  let byteCount = 0
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      throw new Refusal({ status: 400, code: 'body-incomplete', title: 'The body broke off.' }, { cause: error })
    })
    if (done) return joined(chunks, byteCount)
    byteCount += value.byteLength
    if (byteCount > maxBytes) {
      // Not awaited: how the source takes it is not the client's concern.
      reader.cancel().catch(() => undefined)
      throw new Refusal(tooLarge(maxBytes))
    }
    chunks.push(value)
  }
}

function joined(chunks: readonly Uint8Array[], byteCount: number): Uint8Array {
  const whole = new Uint8Array(byteCount)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.byteLength
  }
  return whole
}

/** A mistake in the set-up of the server, so the text may be plain: it names no insides. */
function consumed(): Refusal {
  const problem =
    'the body of the request was read before it reached the receiver, which needs the raw bytes. ' +
    'Mount the receiver before any body parser (express.json() and the like).'
  return new Refusal(
    {
      status: 500,
      code: 'body-consumed',
      title: 'The raw bytes of the body are needed, but a body parser consumed them: mount the receiver before it.',
    },
    { cause: new ChokaQError('CHOKAQ_CONFIG_INVALID', { problem }) },
  )
}
