// Puts the mock of the Deck's server below `api/` of Vite's development server and of `vite preview`.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Connect, Plugin } from 'vite'
import { answerGet, answerPost, exportText, liveEvent } from './mock-server.ts'

const prefix = '/api/'
const liveEveryMs = 1_000

export function mockDeck(): Plugin {
  return {
    name: 'mock-deck',
    configureServer: ({ middlewares }) => void middlewares.use(answerMock),
    configurePreviewServer: ({ middlewares }) => void middlewares.use(answerMock),
  }
}

/** For a plain HTTP server too, where `next` says that the path is not the mock's. */
export function answerMock(request: IncomingMessage, response: ServerResponse, next: Connect.NextFunction): void {
  const url = new URL(request.url ?? '/', 'http://mock')
  if (!url.pathname.startsWith(prefix)) return next()
  const path = url.pathname.slice(prefix.length)
  if (path === 'events') return stream(response)
  if (path === 'export') {
    response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(exportText(url.searchParams))
    return
  }
  if (request.method !== 'POST') return send(response, answerGet(path, url.searchParams))
  readBody(request).then(
    (body) => send(response, answerPost(path, body)),
    (error: unknown) => send(response, { status: 400, body: { status: 400, code: 'mock', title: String(error) } }),
  )
}

function send(response: ServerResponse, { status, body }: { readonly status: number; readonly body: unknown }): void {
  const type = status >= 400 ? 'application/problem+json' : 'application/json'
  response.writeHead(status, { 'content-type': type }).end(JSON.stringify(body))
}

function stream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
  response.write(liveEvent())
  const timer = setInterval(() => response.write(liveEvent()), liveEveryMs)
  response.on('close', () => clearInterval(timer))
}

async function readBody(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return JSON.parse(text) as Readonly<Record<string, unknown>>
}
