/** The Idempotency-Key header field of draft-ietf-httpapi-idempotency-key-header-07. */
import { keyProblem } from '../core/key-canon.ts'
import { Refusal } from './problem.ts'

const maxKeyLength = 255
/** A String of RFC 9651: printable ASCII in double quotes, `"` and `\` escaped. */
const quotedString = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/
/** Visible ASCII without what a String, a list or parameters are made of. */
const bareText = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+$/

/**
 * The key a client sent: 1 to 255 characters. The draft asks for a quoted String; most clients in use send the bare
 * value, so that is taken too, and `"a"` and `a` are the same key. Two header lines, a list, parameters, and keys that
 * identify nothing (blank, `undefined`, `null`) are refused.
 *
 * @throws Refusal: 400
 */
export function readIdempotencyKey(headers: Headers): string {
  const value = headers.get('idempotency-key')?.trim()
  if (value === undefined || value === '') {
    const title = 'The Idempotency-Key header is missing: this operation needs one.'
    throw new Refusal({ status: 400, code: 'idempotency-key-missing', title })
  }
  const key = quotedString.exec(value)?.[1]?.replace(/\\(.)/g, '$1') ?? (bareText.test(value) ? value : '')
  if (key.length > maxKeyLength || keyProblem(key) !== undefined) {
    const title = 'The Idempotency-Key header must be one text of 1 to 255 printable ASCII characters in double quotes.'
    throw new Refusal({ status: 400, code: 'idempotency-key-invalid', title })
  }
  return key
}
