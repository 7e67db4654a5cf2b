/** Every answer of the Deck gets its headers here, so that none goes out without them. */
import { problemBody, type DeckRefusal } from './problem.ts'

/**
 * No inline script and no inline style, from nowhere but here; so a text of a job that got into the page as markup would
 * still run nothing.
 */
export const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'self'",
  "frame-ancestors 'none'",
  "form-action 'none'",
].join('; ')

const everywhere: Readonly<Record<string, string>> = {
  'content-security-policy': contentSecurityPolicy,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
}
const neverStored = { 'cache-control': 'no-store' }

export type HeaderFields = Readonly<Record<string, string>>

export function answer(
  status: number,
  body: string | ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | null,
  headers: HeaderFields,
): Response {
  return new Response(body, { status, headers: { ...neverStored, ...everywhere, ...headers } })
}

export function json(value: unknown, status = 200, headers: HeaderFields = {}): Response {
  return answer(status, JSON.stringify(value), { 'content-type': 'application/json', ...headers })
}

export function problem(refusal: DeckRefusal): Response {
  const headers = { 'content-type': 'application/problem+json', ...refusal.headers }
  return answer(refusal.status, JSON.stringify({ type: 'about:blank', ...problemBody(refusal) }), headers)
}

export function page(status: number, text: string): Response {
  return answer(status, `${text}\n`, { 'content-type': 'text/plain; charset=utf-8' })
}
