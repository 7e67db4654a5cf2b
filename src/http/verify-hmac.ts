/** Ready verifiers for signed webhooks, on WebCrypto: `subtle.verify` compares in constant time. */
import { durationMs, type Duration } from '../core/duration.ts'
import { misconfigured } from './keyed-contract.ts'

type Verifier = (raw: Uint8Array, headers: Headers) => Promise<boolean>

export interface HmacOptions {
  /** The shared secret; several while it is rotated: a signature by any of them counts. */
  secret: string | readonly string[]
  /** The header that carries the signature, such as 'x-hub-signature-256'. */
  header: string
  /** What stands before the signature, such as 'sha256='. Defaults to nothing. */
  prefix?: string
  /** How the signature is written. Defaults to 'hex'. */
  encoding?: 'hex' | 'base64'
}

/**
 * Verifies an HMAC-SHA-256 of the raw body, the way GitHub (hex after `sha256=`) and Shopify (base64) sign.
 *
 * @example
 * verifyHmacSha256({ secret: [newSecret, oldSecret], header: 'x-hub-signature-256', prefix: 'sha256=' })
 *
 * @throws CHOKAQ_CONFIG_INVALID where a secret is missing or empty: it would let everybody in
 */
export function verifyHmacSha256(options: HmacOptions): Verifier {
  const { header, prefix = '', encoding = 'hex' } = options
  const keys = hmacKeys(options.secret, 'verifyHmacSha256')
  return async (raw, headers) => {
    const value = headers.get(header)
    if (value === null || !value.startsWith(prefix)) return false
    const signature = decoded(value.slice(prefix.length), encoding)
    return signature !== undefined && verifies(await keys(), [signature], raw)
  }
}

export interface TimestampedHmacOptions {
  /** The shared secret; several while it is rotated: a signature by any of them counts. */
  secret: string | readonly string[]
  /** Defaults to 'stripe-signature'. */
  header?: string
  /** How far the signed time may be from now, either way. Defaults to 5 minutes. */
  tolerance?: Duration
  /** Milliseconds since 1970. Defaults to the clock of the machine. */
  now?: () => number
}

/**
 * Verifies a signature over time and body, the way Stripe signs: the header is `t=<seconds>,v1=<hex>`, with one or more
 * `v1`, and the HMAC-SHA-256 is that of `<t>.<body>`.
 *
 * @example
 * verifyTimestampedHmacSha256({ secret: endpointSecret })
 *
 * @throws CHOKAQ_CONFIG_INVALID where a secret is missing or empty
 */
export function verifyTimestampedHmacSha256(options: TimestampedHmacOptions): Verifier {
  const { header = 'stripe-signature', tolerance = '5m', now = () => Date.now() } = options
  const toleranceMs = durationMs(tolerance, 'tolerance')
  const keys = hmacKeys(options.secret, 'verifyTimestampedHmacSha256')
  return async (raw, headers) => {
    const parts = (headers.get(header) ?? '').split(',').map((part) => part.trim())
    const time = parts.find((part) => part.startsWith('t='))?.slice(2) ?? ''
    if (!/^\d{1,12}$/.test(time) || Math.abs(now() - Number(time) * 1_000) > toleranceMs) return false
    const signatures = parts
      .filter((part) => part.startsWith('v1='))
      .slice(0, maxSignatureCount)
      .map((part) => decoded(part.slice(3), 'hex'))
      .filter((signature) => signature !== undefined)
    return verifies(await keys(), signatures, joined(new TextEncoder().encode(`${time}.`), raw))
  }
}

/** A sender rotates between a few secrets; more would only make us compute. */
const maxSignatureCount = 5
const signatureLength = 32

type HmacKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>

/** The keys, made at the first use and kept. */
function hmacKeys(secret: unknown, what: string): () => Promise<readonly HmacKey[]> {
  const secrets: readonly unknown[] = Array.isArray(secret) ? secret : [secret]
  const isText = (each: unknown): each is string => typeof each === 'string' && each.trim() !== ''
  if (secrets.length === 0 || !secrets.every(isText)) {
    return misconfigured(`${what} needs a secret: a text, or a list of texts, none of them empty. Is a variable unset?`)
  }
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const imported = (each: string): Promise<HmacKey> =>
    crypto.subtle.importKey('raw', new TextEncoder().encode(each), algorithm, false, ['verify'])
  let keys: Promise<readonly HmacKey[]> | undefined
  return () => (keys ??= Promise.all(secrets.map(imported)))
}

async function verifies(
  keys: readonly HmacKey[],
  signatures: readonly Uint8Array[],
  data: Uint8Array,
): Promise<boolean> {
  let found = false
  for (const key of keys) {
    for (const signature of signatures) {
      // All are tried: how long it takes must not tell which secret matched.
      if (await crypto.subtle.verify('HMAC', key, signature, data)) found = true
    }
  }
  return found
}

/** The 32 bytes of a signature; undefined where the text is none. */
function decoded(text: string, encoding: 'hex' | 'base64'): Uint8Array | undefined {
  if (encoding === 'hex') {
    if (!/^[0-9a-f]{64}$/i.test(text)) return undefined
    return Uint8Array.from({ length: signatureLength }, (_, i) => Number.parseInt(text.slice(2 * i, 2 * i + 2), 16))
  }
  if (!/^[A-Za-z0-9+/]{43}=?$/.test(text)) return undefined
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array {
  const whole = new Uint8Array(head.byteLength + tail.byteLength)
  whole.set(head)
  whole.set(tail, head.byteLength)
  return whole
}
