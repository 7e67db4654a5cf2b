/**
 * One request, from the door to the answer: is the host ours, who asks, what do they want, may they. The order matters:
 * nobody learns whether an address exists before they are let in.
 */
import type { RequestInfo } from '../http/node.ts'
import { type Asset, type Assets, loadAssets } from './assets.ts'
import { contextFor, type DeckParts } from './context.ts'
import { requireRole } from './gate.ts'
import { noCookie } from './login.ts'
import type { DeckIdentity } from './options.ts'
import { refuseForeignChange, refuseForeignRead } from './origin.ts'
import { DeckRefusal, refusalOf } from './problem.ts'
import { optionalText, readJson } from './request.ts'
import { answer, json, page, problem } from './respond.ts'
import { matchRoute } from './routes.ts'

export type DeckHandler = (request: Request, info?: RequestInfo) => Promise<Response>

const maxTokenLength = 1_000
const notBuilt =
  'The Deck has no page: its front end is not built. In a checkout of chokaq run: npm run build:deck\n' +
  'The data below api/ is served all the same.'

export function deckHandler(parts: DeckParts, assetFolder?: string): DeckHandler {
  let assets: Assets | undefined
  const loaded = (): Assets => (assets ??= loadAssets(parts.config.basePath, assetFolder))
  return async (request, info = {}) => {
    try {
      return withoutBody(request, await new Visit(parts, request, info, loaded).answer())
    } catch (error) {
      const refusal = refusalOf(error)
      if (refusal.status >= 500 && error !== refusal) parts.config.onError(error)
      return withoutBody(request, problem(refusal))
    }
  }
}

function withoutBody(request: Request, response: Response): Response {
  if (request.method !== 'HEAD') return response
  // A stream that nobody reads must end, or it would be counted as a client for ever.
  response.body?.cancel().catch(() => undefined)
  return new Response(null, { status: response.status, headers: response.headers })
}

class Visit {
  readonly #parts: DeckParts
  readonly #request: Request
  readonly #info: RequestInfo
  readonly #assets: () => Assets
  readonly #url: URL

  constructor(parts: DeckParts, request: Request, info: RequestInfo, assets: () => Assets) {
    this.#parts = parts
    this.#request = request
    this.#info = info
    this.#assets = assets
    this.#url = new URL(request.url)
  }

  async answer(): Promise<Response> {
    const { gate } = this.#parts
    gate.checkHost(this.#request)
    const segments = this.#segments()
    if (segments?.[0] === 'api') return this.#api(segments.slice(1))
    // With tokens the page itself is what asks for one, and holds nothing else. Everywhere else nobody gets it unasked.
    if (gate.tokens === undefined) await gate.enter(this.#request, this.#info)
    return this.#page(segments)
  }

  /** Below the base path, decoded; undefined where the address is not below it. */
  #segments(): readonly string[] | undefined {
    const { basePath } = this.#parts.config
    const { pathname } = this.#url
    if (pathname === basePath) return []
    if (!pathname.startsWith(`${basePath}/`)) return undefined
    try {
      return pathname
        .slice(basePath.length + 1)
        .split('/')
        .map((segment) => decodeURIComponent(segment))
    } catch {
      return ['%']
    }
  }

  async #api(path: readonly string[]): Promise<Response> {
    const { gate } = this.#parts
    const { method } = this.#request
    if (method === 'POST' && gate.tokens !== undefined) {
      if (path.join('/') === 'login') return this.#logIn()
      if (path.join('/') === 'logout') return this.#logOut()
    }
    const identity = await gate.enter(this.#request, this.#info)
    return this.#routed(path, identity)
  }

  async #routed(path: readonly string[], identity: DeckIdentity): Promise<Response> {
    const { method } = this.#request
    const { route, places, allowed } = matchRoute(method, path)
    if (allowed.length === 1) throw new DeckRefusal(404, 'not-found', 'There is no such address below api/.')
    if (method === 'OPTIONS') return answer(204, null, { allow: allowed.join(', ') })
    if (route === undefined) {
      throw new DeckRefusal(405, 'method-not-allowed', `Here is ${allowed.join(', ')}.`, { allow: allowed.join(', ') })
    }
    const isChange = route.method === 'POST'
    if (isChange) refuseForeignChange(this.#request)
    else refuseForeignRead(this.#request)
    requireRole(identity.role, route.role)
    const context = contextFor(this.#parts, identity)
    // A stream that is asked for its headers only would be opened for nobody.
    if (method === 'HEAD' && route.path === 'events') return answer(200, null, { 'content-type': 'text/event-stream' })
    const body = isChange ? await readJson(this.#request, this.#parts.config.maxBodyBytes) : {}
    return route.answer({ context, places, query: this.#url.searchParams, body })
  }

  async #logIn(): Promise<Response> {
    refuseForeignChange(this.#request)
    const body = await readJson(this.#request, this.#parts.config.maxBodyBytes)
    const cookie = this.#parts.gate.logIn(
      optionalText(body, 'token', maxTokenLength) ?? '',
      this.#info,
      this.#cookiePlace(),
    )
    return json({ ok: true }, 200, { 'set-cookie': cookie })
  }

  #logOut(): Response {
    refuseForeignChange(this.#request)
    return json({ ok: true }, 200, { 'set-cookie': noCookie(this.#cookiePlace()) })
  }

  #cookiePlace(): { readonly path: string; readonly isEncrypted: boolean } {
    return { path: `${this.#parts.config.basePath}/`, isEncrypted: this.#url.protocol === 'https:' }
  }

  #page(segments: readonly string[] | undefined): Response {
    const { method } = this.#request
    if (segments === undefined) throw new DeckRefusal(404, 'not-found', 'The Deck is mounted at another path.')
    if (method === 'OPTIONS') return answer(204, null, { allow: 'GET, HEAD, OPTIONS' })
    if (method !== 'GET' && method !== 'HEAD') {
      throw new DeckRefusal(405, 'method-not-allowed', 'Only GET is answered here.', { allow: 'GET, HEAD, OPTIONS' })
    }
    const assets = this.#assets()
    const path = segments.join('/')
    const asset = assets.find(path)
    if (asset !== undefined) return this.#asset(asset)
    // A file of a former build; the page in its place would be run as a script.
    if (path.startsWith('assets/')) throw new DeckRefusal(404, 'not-found', 'There is no such file.')
    return assets.index === undefined ? page(503, notBuilt) : this.#asset(assets.index)
  }

  #asset({ bytes, contentType, isImmutable, etag }: Asset): Response {
    const caching = isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache'
    const headers = { 'content-type': contentType, 'cache-control': caching, etag }
    const known = (this.#request.headers.get('if-none-match') ?? '').split(',').map((each) => each.trim())
    if (known.includes(etag)) return answer(304, null, headers)
    return answer(200, bytes, headers)
  }
}
