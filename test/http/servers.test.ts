// The same receiver on real servers: node:http, Express 5 and Fastify 5.
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { ChokaQ } from 'chokaq'
import { type RequestHandler, toNodeListener } from 'chokaq/http'
import express from 'express'
import fastify from 'fastify'
import { describe, expect, it, onTestFinished } from 'vitest'
import { counts, deferred, openChokaQ, orderBody, receiverOf, signatureHeader, signedHeaders } from './receiving.ts'

async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`
}

const servers: Readonly<Record<string, (handler: RequestHandler) => Promise<string>>> = {
  'node:http': (handler) => listening(createServer(toNodeListener(handler))),
  'Express 5': (handler) => {
    const app = express()
    app.post('/hooks', toNodeListener(handler))
    app.use(express.json())
    return listening(createServer(app))
  },
  'Express 5 with express.raw()': (handler) => {
    const app = express()
    app.use(express.raw({ type: '*/*', limit: '2mb' }))
    app.post('/hooks', toNodeListener(handler))
    return listening(createServer(app))
  },
  'Fastify 5': async (handler) => {
    const app = fastify()
    const listener = toNodeListener(handler)
    await app.register(async (hooks) => {
      // In this scope nobody parses: the receiver reads the raw stream.
      hooks.removeAllContentTypeParsers()
      hooks.addContentTypeParser('*', (_request, _stream, done) => {
        done(null)
      })
      hooks.post('/hooks', (request, reply) => {
        reply.hijack()
        listener(request.raw, reply.raw)
      })
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    onTestFinished(() => app.close())
    return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/hooks`
  },
}

async function serve(name: string): Promise<{ chokaq: ChokaQ; url: string; deliver: Deliver }> {
  const chokaq = openChokaQ()
  const open = servers[name]
  if (open === undefined) throw new TypeError(`no server ${name}`)
  const url = await open(receiverOf(chokaq))
  const deliver: Deliver = (id, body = orderBody, headers = {}) =>
    fetch(url, { method: 'POST', body, headers: { ...signedHeaders(id, body), ...headers } })
  return { chokaq, url, deliver }
}
type Deliver = (id: string, body?: string, headers?: Record<string, string>) => Promise<Response>

describe.each(Object.keys(servers))('a receiver on %s', (name) => {
  it('stores a signed delivery once and knows its redeliveries', async () => {
    const { chokaq, deliver } = await serve(name)
    const statuses = []
    for (let i = 0; i < 3; i += 1) statuses.push((await deliver('d1')).status)
    expect(statuses).toEqual([202, 200, 200])
    expect(await counts(chokaq)).toEqual({ hot: 1, archive: 0, dlq: 0 })
  })

  it('makes one job of 50 concurrent deliveries', async () => {
    const { chokaq, deliver } = await serve(name)
    const statuses = await Promise.all(Array.from({ length: 50 }, async () => (await deliver('d1')).status))
    expect(statuses.toSorted()).toEqual([...Array.from({ length: 49 }, () => 200), 202])
    expect((await counts(chokaq)).hot).toBe(1)
  })

  it('refuses a wrong signature and goes on with the connection', async () => {
    const { chokaq, deliver } = await serve(name)
    const wrong = await deliver('d1', orderBody, { [signatureHeader]: 'sha256=00' })
    expect(wrong.status).toBe(401)
    expect((await counts(chokaq)).hot).toBe(0)
    expect((await deliver('d1')).status).toBe(202)
  })

  it('answers 413 to a body that is too large, with and without a length', async () => {
    const { chokaq, url, deliver } = await serve(name)
    const large = 'x'.repeat(1_000_001)
    expect((await deliver('d1', large)).status).toBe(413)
    const chunks = new Blob([large]).stream()
    const headers = signedHeaders('d1', large)
    expect((await fetch(url, { method: 'POST', body: chunks, headers, duplex: 'half' })).status).toBe(413)
    expect((await counts(chokaq)).hot).toBe(0)
  })

  it('verifies bytes that are no UTF-8 as they came', async () => {
    const { url } = await serve(name)
    const bytes = Uint8Array.from([0xff, 0x00, 0xfe, 0x0d])
    const response = await fetch(url, { method: 'POST', body: bytes, headers: signedHeaders('d1', bytes) })
    // Verified, and then refused by payload(), which wants JSON.
    expect(response.status).toBe(400)
  })
})

describe('a body that a parser consumed', () => {
  it('is answered with what to change, and nothing is stored', async () => {
    const chokaq = openChokaQ()
    const app = express()
    app.use(express.json())
    app.post('/hooks', toNodeListener(receiverOf(chokaq)))
    const url = await listening(createServer(app))
    const headers = signedHeaders('d1', orderBody)
    const response = await fetch(url, { method: 'POST', body: orderBody, headers })
    expect(response.status).toBe(500)
    expect(await response.json()).toMatchObject({
      code: 'body-consumed',
      title: expect.stringMatching(/raw bytes/) as unknown,
    })
    expect((await counts(chokaq)).hot).toBe(0)
  })
})

describe('raw bytes that a parser kept', () => {
  it('are used where express.json() stores them as rawBody', async () => {
    const chokaq = openChokaQ()
    const app = express()
    const keep = (request: object, _response: object, buffer: Buffer): void => {
      Object.assign(request, { rawBody: buffer })
    }
    app.use(express.json({ verify: keep }))
    app.post('/hooks', toNodeListener(receiverOf(chokaq)))
    const url = await listening(createServer(app))
    const headers = signedHeaders('d1', orderBody)
    expect((await fetch(url, { method: 'POST', body: orderBody, headers })).status).toBe(202)
  })
})

describe('toNodeListener', () => {
  const listen = (handler: RequestHandler, onError?: (error: unknown) => void) =>
    listening(createServer(toNodeListener(handler, onError === undefined ? {} : { onError })))

  it('hands over method, address, headers and body', async () => {
    const url = await listen(async (request) =>
      Response.json({
        method: request.method,
        url: request.url,
        header: request.headers.get('x-two'),
        body: await request.text(),
      }),
    )
    const response = await fetch(`${url}?a=1&b=%C3%A9`, {
      method: 'PUT',
      headers: [
        ['x-two', '1'],
        ['x-two', '2'],
      ],
      body: 'é',
    })
    expect(await response.json()).toEqual({ method: 'PUT', url: `${url}?a=1&b=%C3%A9`, header: '1, 2', body: 'é' })
  })

  it('gives the address before Express took the mount path off', async () => {
    const app = express()
    app.use(
      '/mounted',
      toNodeListener((request) => Promise.resolve(new Response(request.url))),
    )
    const url = await listening(createServer(app))
    const address = url.replace('/hooks', '/mounted/here')
    expect(await (await fetch(address)).text()).toBe(address)
  })

  it('passes status, headers and every cookie back', async () => {
    const url = await listen(async () => {
      const headers = new Headers({ 'x-answer': 'yes' })
      headers.append('set-cookie', 'a=1; Path=/')
      headers.append('set-cookie', 'b=2, still b')
      return new Response('body', { status: 418, headers })
    })
    const response = await fetch(url)
    expect([response.status, response.headers.get('x-answer'), await response.text()]).toEqual([418, 'yes', 'body'])
    expect(response.headers.getSetCookie()).toEqual(['a=1; Path=/', 'b=2, still b'])
  })

  it('answers HEAD and 204 without a body, on one connection', async () => {
    const url = await listen(async (request) =>
      request.method === 'HEAD' ? new Response('four') : new Response(null, { status: 204 }),
    )
    const { port } = new URL(url)
    const answer = await talk(Number(port), [
      'HEAD / HTTP/1.1\r\nHost: x\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    ])
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*content-length: 4\r\n[\s\S]*\r\n\r\nHTTP\/1\.1 204/i)
    expect(answer).not.toContain('four')
  })

  it.each([
    ['a method that the web forbids', 'TRACE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
    ['a host that is none', 'GET / HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n'],
  ])('answers 400 to %s', async (_what, request) => {
    const url = await listen(async () => new Response('no'))
    expect(await talk(Number(new URL(url).port), [request])).toMatch(/^HTTP\/1\.1 400/)
  })

  it('answers 500 without detail where a handler rejects, and tells onError', async () => {
    const heard: unknown[] = []
    const failure = new TypeError('secret')
    const url = await listen(
      () => Promise.reject(failure),
      (error) => heard.push(error),
    )
    const response = await fetch(url, { method: 'POST', body: 'x' })
    expect([response.status, await response.text(), heard]).toEqual([500, '', [failure]])
  })

  it('does not answer twice where somebody answered before the handler did', async () => {
    const answered = deferred<undefined>()
    const heard: unknown[] = []
    const listener = toNodeListener(
      async () => {
        await answered.promise
        return new Response('late')
      },
      { onError: (error) => heard.push(error) },
    )
    const withDeadline: RequestListener = (request, response) => {
      listener(request, response)
      response.statusCode = 504
      response.end('too slow')
      response.once('finish', () => {
        answered.resolve(undefined)
      })
    }
    const url = await listening(createServer(withDeadline))
    const response = await fetch(url)
    expect([response.status, await response.text()]).toEqual([504, 'too slow'])
    await answered.promise
    expect(heard).toEqual([])
  })
})

describe('a client that does not stop sending', () => {
  it('gets to read 413 and is cut off', async () => {
    const chokaq = openChokaQ()
    const url = await listening(createServer(toNodeListener(receiverOf(chokaq))))
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    const received: Buffer[] = []
    socket.on('data', (data: Buffer) => received.push(data))
    // The reset that cuts it off is an error of the socket, and expected.
    socket.on('error', () => undefined)
    const closed = deferred<undefined>()
    socket.once('close', () => {
      closed.resolve(undefined)
    })
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    const send = (): void => {
      while (socket.writable && socket.write(chunk));
    }
    socket.on('drain', send)
    socket.write('POST /hooks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
    send()
    await closed.promise
    const answer = Buffer.concat(received).toString()
    expect(answer).toMatch(/^HTTP\/1\.1 413/)
    expect(answer).toMatch(/connection: close/i)
    expect(answer).toContain('body-too-large')
  })
})

describe('a client that goes away', () => {
  it('in the middle of its body stores nothing and harms nobody', async () => {
    const chokaq = openChokaQ()
    const receive = receiverOf(chokaq)
    const ended = deferred<{ status: number; aborted: boolean }>()
    const server = createServer(
      toNodeListener(async (request) => {
        const response = await receive(request)
        ended.resolve({ status: response.status, aborted: request.signal.aborted })
        return response
      }),
    )
    const url = await listening(server)
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write('POST /hooks HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"half":')
    await once(server, 'request')
    socket.destroy()
    expect(await ended.promise).toEqual({ status: 400, aborted: true })
    expect((await counts(chokaq)).hot).toBe(0)
    const headers = signedHeaders('d1', orderBody)
    expect((await fetch(url, { method: 'POST', body: orderBody, headers })).status).toBe(202)
  })
})

/** Sends raw requests over one connection and returns all that comes back until the server closes it. */
async function talk(port: number, requests: readonly string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.write(requests.join(''))
  await once(socket, 'close')
  return Buffer.concat(chunks).toString()
}
