// Who gets in: nobody by default but this machine, and nobody by a header.
import { describe, expect, it } from 'vitest'
import { routes } from '../../src/deck/routes.ts'
import { sqliteInMemory } from '../engine/sqlite-storage.ts'
import { decks, origin, tokenOf, tokens, type Asked } from './deck-scene.ts'

const open = decks(sqliteInMemory)

/** Every address there is, static files and pages included. */
const addresses = [
  ...routes.map(({ method, path }) => ({ method, path: `api/${path.replaceAll('*', 'x')}` })),
  { method: 'GET', path: '' },
  { method: 'GET', path: 'jobs/some-id' },
  { method: 'GET', path: 'index.html' },
  { method: 'GET', path: 'assets/index-abcdefgh.js' },
  { method: 'GET', path: 'api/nothing' },
  { method: 'OPTIONS', path: 'api/jobs' },
  { method: 'DELETE', path: 'api/jobs/x' },
  { method: 'POST', path: 'api/login' },
]

const outside: readonly (readonly [what: string, asked: Asked])[] = [
  ['another machine', { remoteAddress: '10.0.0.7' }],
  ['another machine over IPv6', { remoteAddress: '2001:db8::1' }],
  ['a mapped address', { remoteAddress: '::ffff:10.0.0.7' }],
  ['an address that only looks like loopback', { remoteAddress: '127.0.0.1.evil.example' }],
  [
    'another machine that says it is this one',
    { remoteAddress: '10.0.0.7', headers: { 'x-forwarded-for': '127.0.0.1' } },
  ],
  ...[
    { 'x-forwarded-for': '127.0.0.1' },
    { 'x-forwarded-host': 'localhost' },
    { 'x-forwarded-anything': '1' },
    { forwarded: 'for=127.0.0.1' },
    { 'x-real-ip': '127.0.0.1' },
    { 'x-client-ip': '127.0.0.1' },
    { 'true-client-ip': '127.0.0.1' },
    { 'cf-connecting-ip': '127.0.0.1' },
    { via: '1.1 proxy' },
  ].map((headers): readonly [string, Asked] => [
    `a proxy on this machine (${Object.keys(headers).join()})`,
    { headers },
  ]),
]

describe('a Deck without auth', () => {
  it.each(outside)('refuses %s at every address', async (_what, asked) => {
    const scene = open()
    for (const { method, path } of addresses) {
      const body = method === 'POST' ? { body: {} } : {}
      expect([path, await scene.refusal(path, { ...asked, method, ...body })]).toEqual([path, '403 deny-by-default'])
    }
  })

  it('refuses a request of which nobody knows where it comes from', async () => {
    const { deck } = open()
    const response = await deck(new Request(`${origin}/api/session`))
    expect(response.status).toBe(403)
    expect(((await response.json()) as { title: string }).title).toMatch(/auth.*--token/)
  })

  it.each(['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1'])('lets %s in, as admin', async (remoteAddress) => {
    expect(await open({ localActor: 'otto' }).get('api/session', { remoteAddress })).toMatchObject({
      actor: 'otto',
      role: 'admin',
      source: ':memory:',
    })
  })
})

describe('the host name', () => {
  it.each([
    'evil.example',
    'localhost.evil.example',
    'evil.example:4680',
    '127.0.0.1.nip.io',
    '10.0.0.7',
    '[::2]',
    'localhost@evil.example',
    '0.0.0.0',
  ])('%s is refused, whoever asks', async (host) => {
    for (const scene of [open(), open({ auth: { tokens } })]) {
      expect(await scene.refusal('api/session', { headers: { host }, role: 'admin' })).toBe('403 host-not-allowed')
    }
  })

  it.each(['localhost', 'LOCALHOST:1', '127.0.0.1:9', '[::1]:4680'])('%s is this machine', async (host) => {
    expect((await open().ask('api/session', { headers: { host } })).status).toBe(200)
  })

  it('counts in the address of the request, too', async () => {
    const { deck } = open()
    const request = new Request('http://evil.example/api/session', { headers: { host: 'localhost' } })
    expect((await deck(request, { remoteAddress: '127.0.0.1' })).status).toBe(403)
  })

  it('may be allowed, with a port or without', async () => {
    const scene = open({ auth: { tokens }, allowedHosts: ['deck.example.com', 'other.example.com:8443'] })
    const status = async (host: string) =>
      (await scene.ask('api/session', { headers: { host }, role: 'viewer', remoteAddress: '10.0.0.7' })).status
    expect([
      await status('deck.example.com'),
      await status('Deck.Example.com:99'),
      await status('other.example.com:8443'),
      await status('other.example.com'),
      await status('sub.deck.example.com'),
    ]).toEqual([200, 200, 200, 403, 403])
  })
})

describe('a callback', () => {
  it('says who it is', async () => {
    const scene = open({ auth: async (request) => ({ actor: request.headers.get('x-user') ?? '', role: 'viewer' }) })
    expect(await scene.get('api/session', { headers: { 'x-user': 'vera' } })).toMatchObject({
      actor: 'vera',
      role: 'viewer',
    })
  })

  it.each([
    ['null', () => null],
    ['an actor without a role', () => ({ actor: 'x' })],
    ['a role nobody knows', () => ({ actor: 'x', role: 'root' })],
    ['an actor that would forge a line of a log', () => ({ actor: 'x\nadmin', role: 'viewer' })],
    ['a blank actor', () => ({ actor: ' ', role: 'viewer' })],
    ['true', () => true],
    [
      'an error',
      () => {
        throw new TypeError('secret')
      },
    ],
  ])('that answers %s lets nobody in, not even to the page', async (_what, call) => {
    const scene = open({ auth: call as never })
    for (const path of ['', 'api/session', 'api/events', 'api/nothing', 'assets/x.js']) {
      expect([path, await scene.refusal(path)]).toEqual([path, '401 login-required'])
    }
  })

  it('may read the body, and leaves it for the Deck', async () => {
    const scene = open({
      auth: async (request) => (await request.text(), { actor: 'ada', role: 'admin' as const }),
    })
    expect(await scene.post('api/queues/mail', { paused: true, note: '' })).toMatchObject({ queue: { paused: true } })
  })
})

describe('tokens', () => {
  it('let in by header, each with its role', async () => {
    const scene = open({ auth: { tokens } })
    for (const { actor, role } of tokens) {
      expect(await scene.get('api/session', { role, remoteAddress: '10.0.0.7' })).toMatchObject({ actor, role })
    }
  })

  it('are needed on this machine, too', async () => {
    expect(await open({ auth: { tokens } }).refusal('api/session')).toBe('401 login-required')
  })

  it('leave the page open, which holds no data, and nothing else', async () => {
    const scene = open({ auth: { tokens } })
    for (const { method, path } of addresses.filter(
      (each) => each.path.startsWith('api/') && each.path !== 'api/login',
    )) {
      const body = method === 'POST' ? { body: {} } : {}
      expect([path, await scene.refusal(path, { method, ...body })]).toEqual([path, '401 login-required'])
    }
    expect([200, 503]).toContain((await scene.ask('')).status)
  })

  it('become a cookie that no script reads and no other site sends', async () => {
    const scene = open({ auth: { tokens }, basePath: '/deck' })
    const response = await scene.ask('deck/api/login', { body: { token: tokenOf('operator') } })
    expect(response.status).toBe(200)
    const [cookie = ''] = response.headers.getSetCookie()
    expect(cookie).toMatch(/^chokaq_deck=\d{13}\.[\w-]{43}; Path=\/deck\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
    expect(cookie).not.toContain(tokenOf('operator'))
    const [pair = ''] = cookie.split(';')
    expect(await scene.get('deck/api/session', { headers: { cookie: `other=1; ${pair}` } })).toMatchObject({
      actor: 'otto',
    })
    await scene.world.runtime.advance(12 * 3_600_000 + 1)
    expect(await scene.refusal('deck/api/session', { headers: { cookie: pair } })).toBe('401 login-required')
  })

  it.each(['', 'x', '9999999999999.x', `9999999999999.${'A'.repeat(43)}`, `0000000000001.${'-'.repeat(43)}`])(
    'the forged cookie %j lets nobody in',
    async (value) => {
      const cookie = `chokaq_deck=${value}`
      expect(await open({ auth: { tokens } }).refusal('api/session', { headers: { cookie } })).toBe(
        '401 login-required',
      )
    },
  )

  it('cannot be guessed for long, from one address', async () => {
    const scene = open({ auth: { tokens }, limits: { loginsPerMinute: 3 } })
    const guess = (remoteAddress: string) =>
      scene.refusal('api/login', { body: { token: 'x'.repeat(20) }, remoteAddress })
    const answers = [await guess('10.0.0.7'), await guess('10.0.0.7'), await guess('10.0.0.7'), await guess('10.0.0.7')]
    expect(answers).toEqual([...Array<string>(3).fill('401 login-failed'), '429 too-many-requests'])
    expect(await guess('10.0.0.8')).toBe('401 login-failed')
    const wrong = { headers: { authorization: 'Bearer nobody-has-this-token' }, remoteAddress: '10.0.0.7' }
    expect(await scene.refusal('api/session', wrong)).toBe('429 too-many-requests')
    await scene.world.runtime.advance(60_000)
    expect(await scene.refusal('api/session', wrong)).toBe('401 login-failed')
  })

  it('can be taken back', async () => {
    const response = await open({ auth: { tokens } }).ask('api/logout', { body: {} })
    expect(response.headers.getSetCookie()[0]).toMatch(/^chokaq_deck=; Path=\/; Max-Age=0/)
  })
})

describe('options that would open the door by mistake', () => {
  it.each([
    ['no tokens', { auth: { tokens: [] } }],
    ['auth that is null', { auth: null }],
    ['auth that is an empty object', { auth: {} }],
    ['a short token', { auth: { tokens: [{ token: 'short', actor: 'x', role: 'admin' }] } }],
    [
      'a token that no header carries',
      { auth: { tokens: [{ token: 'a token with blanks', actor: 'x', role: 'admin' }] } },
    ],
    ['a token without a role', { auth: { tokens: [{ token: 'x'.repeat(20), actor: 'x' }] } }],
    ['an option that is spelt wrong', { Auth: () => null }],
    ['a base path with markup', { basePath: '/"><script>' }],
    ['a host that is a URL', { allowedHosts: ['https://deck.example.com'] }],
    ['a redaction that is empty', { redact: ['card..number'] }],
  ])('%s', (_what, options) => {
    expect(() => open(options as never)).toThrow(/createDeck/)
  })
})
