/**
 * Tokens, and the cookie that stands for one: an EventSource and a link cannot send an Authorization header. The cookie
 * holds until when it is good and a signature under its token, so it survives a restart and another process, and dies
 * with the token. Every comparison looks at every token and takes the same time whatever is wrong.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { DeckIdentity, DeckToken } from './options.ts'

const cookieName = 'chokaq_deck'
const sessionMs = 12 * 3_600_000
const maxCookieLength = 200

export class Tokens {
  readonly #tokens: readonly DeckToken[]

  constructor(tokens: readonly DeckToken[]) {
    this.#tokens = tokens
  }

  /** Whose token it is; undefined where it is nobody's. */
  find(token: string): DeckToken | undefined {
    const given = digest(token)
    let found: DeckToken | undefined
    for (const each of this.#tokens) if (timingSafeEqual(digest(each.token), given)) found = each
    return found
  }

  /** Of an Authorization header or a cookie; `wrong` where one was given and is none of ours. */
  identify(headers: Headers, nowMs: number): DeckIdentity | 'wrong' | undefined {
    const bearer = /^Bearer +([\x21-\x7e]{1,1000})$/i.exec(headers.get('authorization') ?? '')?.[1]
    if (bearer !== undefined) return this.find(bearer) ?? 'wrong'
    const cookie = cookieOf(headers)
    return cookie === undefined ? undefined : this.#ofCookie(cookie, nowMs)
  }

  /** An expired or foreign cookie is no attempt to guess: the page asks for the token anew. */
  #ofCookie(cookie: string, nowMs: number): DeckIdentity | undefined {
    const match = /^(\d{13})\.([\w-]{43})$/.exec(cookie)
    if (match === null) return undefined
    const [, until = '', signature = ''] = match
    let found: DeckToken | undefined
    for (const each of this.#tokens) {
      if (timingSafeEqual(Buffer.from(sign(each.token, until)), Buffer.from(signature))) found = each
    }
    return Number(until) > nowMs ? found : undefined
  }

  cookieFor({ token }: DeckToken, nowMs: number, of: CookiePlace): string {
    const until = String(nowMs + sessionMs).padStart(13, '0')
    return cookieText(`${until}.${sign(token, until)}`, Math.floor(sessionMs / 1_000), of)
  }
}

export interface CookiePlace {
  readonly path: string
  readonly isEncrypted: boolean
}

export function noCookie(of: CookiePlace): string {
  return cookieText('', 0, of)
}

function cookieText(value: string, maxAgeSeconds: number, { path, isEncrypted }: CookiePlace): string {
  const parts = [`${cookieName}=${value}`, `Path=${path}`, `Max-Age=${maxAgeSeconds}`, 'HttpOnly', 'SameSite=Strict']
  return [...parts, ...(isEncrypted ? ['Secure'] : [])].join('; ')
}

function cookieOf(headers: Headers): string | undefined {
  for (const part of (headers.get('cookie') ?? '').split(';')) {
    const [name = '', value = ''] = part.trim().split('=', 2)
    if (name === cookieName && value.length <= maxCookieLength) return value
  }
  return undefined
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest()
}

function sign(token: string, until: string): string {
  return createHmac('sha256', digest(`chokaq deck session\n${token}`))
    .update(until, 'utf8')
    .digest('base64url')
}
