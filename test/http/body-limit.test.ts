import { describe, expect, it, vi } from 'vitest'
import { answerOf, openChokaQ, receiverOf } from './receiving.ts'

const url = 'http://receiver.test/'
const limit = 1_000

/** A body in chunks of 100 bytes that counts how many were taken; it never ends by itself. */
function endlessBody(): {
  readonly stream: ReadableStream<Uint8Array>
  readonly taken: () => number
  cancelled: boolean
} {
  let count = 0
  const state = {
    cancelled: false,
    taken: () => count,
    stream: new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          count += 1
          controller.enqueue(new Uint8Array(100))
        },
        cancel() {
          state.cancelled = true
        },
      },
      { highWaterMark: 0 },
    ),
  }
  return state
}

function receive(request: Request, payload?: () => never): Promise<Response> {
  return receiverOf(openChokaQ(), {
    verify: () => true,
    maxBodyBytes: limit,
    payload: payload ?? (() => ({ deliveryId: 'd', event: 'e', amount: 1 })),
  })(request)
}

function post(body: Uint8Array | ReadableStream<Uint8Array>, headers: Record<string, string> = {}): Request {
  return new Request(url, { method: 'POST', body, headers, duplex: 'half' })
}

describe('the body limit', () => {
  it('takes a body of exactly the limit', async () => {
    expect((await receive(post(new Uint8Array(limit)))).status).toBe(202)
  })

  it('refuses one byte more', async () => {
    const { status, body } = await answerOf(await receive(post(new Uint8Array(limit + 1))))
    expect({ status, code: body['code'], maxBytes: body['maxBytes'] }).toEqual({
      status: 413,
      code: 'body-too-large',
      maxBytes: limit,
    })
  })

  it('stops reading a body without a length at the limit', async () => {
    const body = endlessBody()
    expect((await receive(post(body.stream))).status).toBe(413)
    expect(body.taken()).toBe(limit / 100 + 1)
    expect(body.cancelled).toBe(true)
  })

  it('does not believe a Content-Length that is too small', async () => {
    const body = endlessBody()
    expect((await receive(post(body.stream, { 'content-length': '10' }))).status).toBe(413)
  })

  it('reads nothing of a body that says it is too large', async () => {
    const body = endlessBody()
    expect((await receive(post(body.stream, { 'content-length': '1001' }))).status).toBe(413)
    expect(body.taken()).toBe(0)
  })

  it('is 400 where the body breaks off', async () => {
    const payload = vi.fn<() => never>()
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.error(new TypeError('the connection is gone'))
      },
    })
    const { status, body } = await answerOf(await receive(post(stream), payload))
    expect({ status, code: body['code'] }).toEqual({ status: 400, code: 'body-incomplete' })
    expect(payload).not.toHaveBeenCalled()
  })

  it('takes a request without a body', async () => {
    expect((await receive(new Request(url, { method: 'POST' }))).status).toBe(202)
  })

  it('says what to change where somebody read the body before', async () => {
    const request = post(new Uint8Array(5))
    await request.arrayBuffer()
    const { status, body } = await answerOf(await receive(request))
    expect({ status, code: body['code'] }).toEqual({ status: 500, code: 'body-consumed' })
    expect(body['title']).toMatch(/raw bytes/)
  })
})
