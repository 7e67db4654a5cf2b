// The same Deck in Hono, Express, Fastify, Next.js and node:http: below its base path, with streams that stream.
import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createChokaQ } from 'chokaq'
import { createDeck, type Deck } from 'chokaq/deck'
import { toNodeListener } from 'chokaq/http'
import { sqlite } from 'chokaq/sqlite'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { describe, expect, it, onTestFinished } from 'vitest'
import { tokenOf, tokens } from './deck-scene.ts'

function openDeck(withAuth: boolean): Deck {
  const chokaq = createChokaQ({ storage: sqlite(':memory:') })
  const deck = createDeck({ chokaq, basePath: '/ops/deck', ...(withAuth ? { auth: { tokens } } : {}) })
  onTestFinished(async () => {
    await deck.close()
    await chokaq.close()
  })
  return deck
}

async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Of a server of Node: the Deck learns the client's address. */
const nodeServers: Readonly<Record<string, (deck: Deck) => Promise<string>>> = {
  'node:http': (deck) => listening(createServer(toNodeListener(deck))),
  'Express 5': (deck) => {
    const app = express()
    app.use('/ops/deck', toNodeListener(deck))
    app.use(express.json())
    app.use((_request, response) => void response.status(418).end())
    return listening(createServer(app))
  },
  'Fastify 5': async (deck) => {
    const app = fastify({ forceCloseConnections: true })
    const listener = toNodeListener(deck)
    await app.register(async (own) => {
      own.removeAllContentTypeParsers()
      own.addContentTypeParser('*', (_request, _stream, done) => {
        done(null)
      })
      own.all('/ops/deck/*', (incoming, reply) => {
        reply.hijack()
        listener(incoming.raw, reply.raw)
      })
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    onTestFinished(() => app.close())
    return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  },
}

describe.each(Object.keys(nodeServers))('a Deck in %s', (name) => {
  const open = async (withAuth = false): Promise<string> => {
    const serve = nodeServers[name]
    if (serve === undefined) throw new TypeError(`no server ${name}`)
    return serve(openDeck(withAuth))
  }

  it('answers this machine, and nobody through a proxy', async () => {
    const url = await open()
    const session = await fetch(`${url}/ops/deck/api/session`)
    expect([session.status, await session.json()]).toEqual([200, expect.objectContaining({ role: 'admin' })])
    const proxied = await fetch(`${url}/ops/deck/api/session`, { headers: { 'x-forwarded-for': '127.0.0.1' } })
    expect(proxied.status).toBe(403)
  })

  it('takes a change from its own origin', async () => {
    const url = await open()
    const change = (origin: string) =>
      fetch(`${url}/ops/deck/api/queues/mail`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin },
        body: JSON.stringify({ paused: true, note: 'maintenance' }),
      })
    expect((await change('https://evil.example')).status).toBe(403)
    const answer = await change(url)
    expect([answer.status, await answer.json()]).toEqual([
      200,
      { queue: expect.objectContaining({ paused: true }) as unknown },
    ])
  })

  it('signs in with a token, by a cookie', async () => {
    const url = await open(true)
    const headers = { 'content-type': 'application/json', origin: url }
    const body = JSON.stringify({ token: tokenOf('viewer') })
    const login = await fetch(`${url}/ops/deck/api/login`, { method: 'POST', headers, body })
    const cookie = login.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    const session = await fetch(`${url}/ops/deck/api/session`, { headers: { cookie } })
    expect(await session.json()).toMatchObject({ actor: 'vera' })
  })

  it('streams its events', async () => {
    const { port } = new URL(await open())
    const outgoing = request({ port, path: '/ops/deck/api/events', host: '127.0.0.1' }).end()
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    let text = ''
    incoming.on('data', (chunk: Buffer) => (text += chunk.toString()))
    await expect.poll(() => text, { timeout: 10_000 }).toMatch(/^data: \{"kind":"state"/m)
    incoming.destroy()
  })
})

/** Of the web: the request is all there is, so nobody is near by itself. */
const webServers: Readonly<Record<string, (deck: Deck) => (incoming: Request) => Promise<Response>>> = {
  Hono: (deck) => {
    const app = new Hono()
    app.all('/ops/deck/*', (c) => deck(c.req.raw))
    return async (incoming) => app.fetch(incoming)
  },
  'a route of Next.js': (deck) => {
    // app/ops/deck/[[...path]]/route.ts: export const GET = deck; export const POST = deck
    const route: Readonly<Record<string, (incoming: Request, context: object) => Promise<Response>>> = {
      GET: deck,
      POST: deck,
    }
    return (incoming) =>
      route[incoming.method]?.(incoming, { params: Promise.resolve({}) }) ?? Promise.reject(new TypeError())
  },
}

describe.each(Object.keys(webServers))('a Deck in %s', (name) => {
  const ask = (deck: Deck, path: string, init: RequestInit = {}): Promise<Response> => {
    const serve = webServers[name]
    if (serve === undefined) throw new TypeError(`no server ${name}`)
    return serve(deck)(new Request(`http://localhost:3000/ops/deck/${path}`, init))
  }

  it('lets nobody in without auth: it does not know who asks', async () => {
    const response = await ask(openDeck(false), 'api/session')
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([403, 'deny-by-default'])
  })

  it('answers with auth, streams its events, and takes a change', async () => {
    const deck = openDeck(true)
    const authorization = `Bearer ${tokenOf('operator')}`
    expect(await (await ask(deck, 'api/session', { headers: { authorization } })).json()).toMatchObject({
      actor: 'otto',
    })
    const change = await ask(deck, 'api/queues/mail', {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json', origin: 'http://localhost:3000' },
      body: JSON.stringify({ paused: true, note: '' }),
    })
    expect(change.status).toBe(200)
    const events = await ask(deck, 'api/events', { headers: { authorization } })
    const reader = (events.body as ReadableStream<Uint8Array>).getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toMatch(/^retry: /)
    await reader.cancel()
  })
})
