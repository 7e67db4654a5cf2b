import { createHmac } from 'node:crypto'
import { verifyHmacSha256, verifyTimestampedHmacSha256 } from 'chokaq/http'
import { describe, expect, it } from 'vitest'

const body = new TextEncoder().encode('{"hello":"Ada"}')

function hmac(secret: string, data: string | Uint8Array, encoding: 'hex' | 'base64' = 'hex'): string {
  return createHmac('sha256', secret).update(data).digest(encoding)
}

describe('verifyHmacSha256', () => {
  const verify = verifyHmacSha256({ secret: 'old', header: 'X-Hub-Signature-256', prefix: 'sha256=' })
  const signed = (value: string) => new Headers({ 'x-hub-signature-256': value })

  it('knows the example of the GitHub documentation', async () => {
    const github = verifyHmacSha256({
      secret: "It's a Secret to Everybody",
      header: 'x-hub-signature-256',
      prefix: 'sha256=',
    })
    const raw = new TextEncoder().encode('Hello, World!')
    const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
    expect(await github(raw, signed(signature))).toBe(true)
    expect(await github(new TextEncoder().encode('Hello, world!'), signed(signature))).toBe(false)
  })

  it('takes a signature in capitals', async () => {
    expect(await verify(body, signed(`sha256=${hmac('old', body).toUpperCase()}`))).toBe(true)
  })

  it.each([
    ['no header', new Headers()],
    ['an empty header', signed('')],
    ['another secret', signed(`sha256=${hmac('other', body)}`)],
    ['a missing prefix', signed(hmac('old', body))],
    ['another prefix', signed(`sha1=${hmac('old', body)}`)],
    ['a cut signature', signed(`sha256=${hmac('old', body).slice(0, 62)}`)],
    ['a longer signature', signed(`sha256=${hmac('old', body)}00`)],
    ['no hexadecimal digits', signed(`sha256=${'z'.repeat(64)}`)],
    ['base64 instead of hex', signed(`sha256=${hmac('old', body, 'base64')}`)],
    ['two signatures', signed(`sha256=${hmac('old', body)}, sha256=${hmac('old', body)}`)],
  ])('refuses %s', async (_what, headers) => {
    expect(await verify(body, headers)).toBe(false)
  })

  it('takes any of several secrets, so that they can be rotated', async () => {
    const rotating = verifyHmacSha256({ secret: ['new', 'old'], header: 'x-hub-signature-256', prefix: 'sha256=' })
    expect(await rotating(body, signed(`sha256=${hmac('new', body)}`))).toBe(true)
    expect(await rotating(body, signed(`sha256=${hmac('old', body)}`))).toBe(true)
    expect(await rotating(body, signed(`sha256=${hmac('older', body)}`))).toBe(false)
  })

  it('reads base64 without a prefix, as Shopify sends it', async () => {
    const shopify = verifyHmacSha256({ secret: 's', header: 'x-shopify-hmac-sha256', encoding: 'base64' })
    const headers = new Headers({ 'x-shopify-hmac-sha256': hmac('s', body, 'base64') })
    expect(await shopify(body, headers)).toBe(true)
    expect(await shopify(body, new Headers({ 'x-shopify-hmac-sha256': hmac('t', body, 'base64') }))).toBe(false)
    expect(await shopify(body, new Headers({ 'x-shopify-hmac-sha256': '*'.repeat(44) }))).toBe(false)
  })

  it.each([undefined, '', '  ', [], ['good', ''], ['good', undefined]])(
    'refuses to be made with the secret %j',
    (secret) => {
      expect(() => verifyHmacSha256({ secret: secret as string, header: 'x' })).toThrow(/needs a secret/)
    },
  )
})

describe('verifyTimestampedHmacSha256', () => {
  const nowMs = 1_700_000_000_000
  const seconds = nowMs / 1_000
  const verify = verifyTimestampedHmacSha256({ secret: ['new', 'old'], now: () => nowMs })
  const signature = (secret: string, at: number) => hmac(secret, `${at}.{"hello":"Ada"}`)
  const signed = (value: string) => new Headers({ 'stripe-signature': value })

  it('takes a signature over time and body', async () => {
    expect(await verify(body, signed(`t=${seconds},v1=${signature('old', seconds)},v0=ignored`))).toBe(true)
  })

  it('takes one good signature among several', async () => {
    const bad = signature('other', seconds)
    expect(await verify(body, signed(`t=${seconds}, v1=${bad}, v1=${signature('new', seconds)}`))).toBe(true)
  })

  it('takes a time at the edge of the tolerance, not beyond', async () => {
    const at = (time: number) => verify(body, signed(`t=${time},v1=${signature('new', time)}`))
    expect([await at(seconds - 300), await at(seconds + 300)]).toEqual([true, true])
    expect([await at(seconds - 301), await at(seconds + 301)]).toEqual([false, false])
  })

  it.each([
    ['no header', new Headers()],
    ['no time', signed(`v1=${signature('new', seconds)}`)],
    ['a time that is no number', signed(`t=1e9,v1=${signature('new', seconds)}`)],
    ['no signature', signed(`t=${seconds}`)],
    ['a signature of another time', signed(`t=${seconds},v1=${signature('new', seconds - 1)}`)],
    ['a signature of the body alone', signed(`t=${seconds},v1=${hmac('new', body)}`)],
  ])('refuses %s', async (_what, headers) => {
    expect(await verify(body, headers)).toBe(false)
  })
})
