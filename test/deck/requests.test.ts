// What the Deck does with a request that is let in: roles to the letter, changes from its own page only, odd input
// refused with a 4xx and never with a 5xx.
import { describe, expect, it } from 'vitest'
import { routes } from '../../src/deck/routes.ts'
import { contentSecurityPolicy } from '../../src/deck/respond.ts'
import { roles } from '../../src/deck/wire.ts'
import { resize } from '../engine/contracts.ts'
import { storages } from '../engine/storages.ts'
import { sqliteInMemory } from '../engine/sqlite-storage.ts'
import { decks, tokens, type Asked, type DeckScene, type RoleName } from './deck-scene.ts'

const open = decks(sqliteInMemory)
const withTokens = (): DeckScene => open({ auth: { tokens } })

describe('roles', () => {
  it.each(roles.slice(0, 2))('%s reaches nothing that needs more', async (role) => {
    const scene = withTokens()
    const above = routes.filter((route) => roles.indexOf(route.role) > roles.indexOf(role))
    expect(above.length).toBeGreaterThan(0)
    for (const { path } of above) {
      const address = `api/${path.replaceAll('*', 'x')}`
      expect([path, await scene.refusal(address, { role, body: {} })]).toEqual([path, '403 role-too-low'])
    }
  })

  it('only GET is for viewers', () => {
    expect(routes.filter(({ method, role }) => method === 'POST' && role === 'viewer')).toEqual([])
    expect(routes.filter(({ method, role }) => method === 'GET' && role !== 'viewer')).toEqual([])
  })

  const tricks: readonly (readonly [what: string, path: string, asked?: Asked | undefined])[] = [
    ['another case', 'api/Jobs/x/Purge'],
    ['another case of api', 'API/jobs/x/purge'],
    ['a slash at the end', 'api/jobs/x/purge/'],
    ['two slashes', 'api//jobs/x/purge'],
    ['a dot', 'api/./jobs/x/purge'],
    ['a step up', 'api/reviews/../jobs/x/purge'],
    ['an encoded step up', 'api/reviews/%2e%2e/jobs/x/purge'],
    ['an encoded slash', 'api/jobs%2Fx%2Fpurge'],
    ['an encoded letter', 'api/jobs/x/pur%67e'],
    ['a backslash', 'api\\jobs\\x\\purge'],
    ['a matrix parameter', 'api/jobs/x/purge;x=1'],
    ['a null byte', 'api/jobs/x/purge%00'],
    ['a broken escape', 'api/jobs/x/purge%zz'],
    ['a method in a header', 'api/session', { headers: { 'x-http-method-override': 'POST' }, method: 'GET' }],
    ['a method in the address', 'api/jobs/x/purge?_method=POST', { method: 'GET' }],
    ['PUT', 'api/jobs/x/purge', { method: 'PUT' }],
    ['DELETE', 'api/jobs/x', { method: 'DELETE' }],
    ['PATCH', 'api/queues/mail', { method: 'PATCH' }],
  ]

  it.each(tricks.map(([what, path, asked = {}]) => ({ what, path, asked })))(
    '$what changes nothing for a viewer',
    async ({ path, asked }) => {
      const scene = withTokens()
      const { id } = await scene.chokaq.enqueue(resize, { id: 'p1' }, { delay: '1h' })
      const address = path.replace('/x/', `/${id}/`)
      const body = asked.method === 'GET' ? {} : { body: { note: '', confirm: id, paused: true } }
      const { status } = await scene.ask(address, { role: 'viewer', ...body, ...asked })
      expect([200, 400, 403, 404, 405]).toContain(status)
      expect(await scene.world.state(id)).toBe('scheduled')
      expect(await scene.chokaq.insight.audit()).toEqual([])
    },
  )

  it('a trick finds no route for an admin either: what is matched is the address to the letter', async () => {
    const scene = withTokens()
    for (const path of ['api/queues/mail/', 'API/queues/mail', 'api//queues/mail', 'api/Queues/mail']) {
      expect([404, 405]).toContain((await scene.ask(path, { role: 'admin', body: { paused: true, note: '' } })).status)
    }
    expect(await scene.chokaq.insight.audit()).toEqual([])
  })

  it('below a base path nothing is reached from beside it', async () => {
    const scene = open({ auth: { tokens }, basePath: '/ops/deck' })
    const role: RoleName = 'admin'
    const statuses = await Promise.all(
      ['api/session', 'ops/api/session', 'ops/deckapi/session', 'ops/deck2/api/session', 'ops%2Fdeck/api/session'].map(
        async (path) => (await scene.ask(path, { role })).status,
      ),
    )
    expect(statuses).toEqual([404, 404, 404, 404, 404])
    expect((await scene.ask('ops/deck/api/session', { role })).status).toBe(200)
  })

  it('everybody is a viewer of a Deck that is read only', async () => {
    const scene = open({ readOnly: true })
    expect(await scene.get('api/session')).toMatchObject({ role: 'viewer' })
    expect(await scene.refusal('api/queues/mail', { body: { paused: true, note: '' } })).toBe('403 role-too-low')
  })
})

describe('a change from somewhere else', () => {
  const change = { body: { paused: true, note: '' } }
  it.each([
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['a sibling site', { 'sec-fetch-site': 'same-site' }],
    ['another origin', { 'sec-fetch-site': '', origin: 'https://evil.example' }],
    ['another origin that calls itself the same', { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' }],
    ['another port of this machine', { 'sec-fetch-site': '', origin: 'http://localhost:3000' }],
    ['a sandboxed page', { 'sec-fetch-site': '', origin: 'null' }],
  ])('%s is refused', async (_what, given) => {
    const headers = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''))
    const scene = open()
    const request = new Request('http://localhost:4680/api/queues/mail', {
      method: 'POST',
      headers: { host: 'localhost:4680', 'content-type': 'application/json', ...headers },
      body: JSON.stringify(change.body),
    })
    const response = await scene.deck(request, { remoteAddress: '127.0.0.1' })
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([403, 'cross-site'])
    expect(await scene.chokaq.queues.list()).toEqual([])
  })

  it('a request that does not say where it comes from is refused', async () => {
    const scene = open()
    const request = new Request('http://localhost:4680/api/queues/mail', {
      method: 'POST',
      headers: { host: 'localhost:4680', 'content-type': 'application/json' },
      body: JSON.stringify(change.body),
    })
    expect((await scene.deck(request, { remoteAddress: '127.0.0.1' })).status).toBe(403)
  })

  it.each([
    undefined,
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'text/plain; x=application/json',
  ])('a body of %s is refused', async (type) => {
    const headers = { 'content-type': type ?? '' }
    expect(await open().refusal('api/queues/mail', { ...change, headers })).toBe('415 unsupported-media-type')
  })

  it('data is not for pages of another site, and no header lets them read it', async () => {
    const scene = open()
    expect(await scene.refusal('api/jobs?pillar=hot', { headers: { 'sec-fetch-site': 'cross-site' } })).toBe(
      '403 cross-site',
    )
    const response = await scene.ask('api/session', { headers: { origin: 'https://evil.example' } })
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  })
})

describe('every answer', () => {
  it('has its headers', async () => {
    const scene = open()
    for (const path of ['api/session', 'api/nothing', 'api/jobs', '', 'assets/none.js', 'api/export?pillar=hot']) {
      const { headers } = await scene.ask(path)
      expect([path, headers.get('content-security-policy')]).toEqual([path, contentSecurityPolicy])
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
      expect(headers.get('x-frame-options')).toBe('DENY')
      if (path.startsWith('api/')) expect(headers.get('cache-control')).toBe('no-store')
    }
    expect(contentSecurityPolicy).not.toMatch(/unsafe|\*|http:/)
  })

  it('to HEAD has no body, to OPTIONS says what there is, to another method 405', async () => {
    const scene = open()
    const head = await scene.ask('api/session', { method: 'HEAD' })
    expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([200, 'application/json', ''])
    const stream = await scene.ask('api/events', { method: 'HEAD' })
    expect([stream.status, await stream.text()]).toEqual([200, ''])
    const options = await scene.ask('api/jobs', { method: 'OPTIONS' })
    expect([options.status, options.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS'])
    const put = await scene.ask('api/jobs', { method: 'PUT', body: {} })
    expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
    expect(await scene.refusal('api/jobs/x/cancel')).toBe('405 method-not-allowed')
  })
})

describe('limits', () => {
  it('a body that is too large is not read, with and without a length', async () => {
    const scene = open({ limits: { maxBodyBytes: 1_000 } })
    const body = { note: 'x'.repeat(1_000) }
    expect(await scene.refusal('api/queues/mail', { body })).toBe('413 body-too-large')
    const headers = { 'content-length': '100000000' }
    expect(await scene.refusal('api/queues/mail', { body: {}, headers })).toBe('413 body-too-large')
  })

  it('an actor has so many requests in a minute, and another has its own', async () => {
    const scene = open({ auth: { tokens }, limits: { requestsPerMinute: 2 } })
    const status = async (role: RoleName) => (await scene.ask('api/session', { role })).status
    expect([await status('viewer'), await status('viewer'), await status('viewer'), await status('admin')]).toEqual([
      200, 200, 429, 200,
    ])
    await scene.world.runtime.advance(30_000)
    expect(await status('viewer')).toBe(200)
  })

  it.each(['{', '[]', '"x"', 'null', '', '{"note":1}'])('the body %s is refused', async (body) => {
    expect((await open().ask('api/queues/mail', { body })).status).toBe(400)
  })

  it('a limit that is too high is cut, one that is no number is refused', async () => {
    const scene = open()
    await scene.chokaq.enqueueMany(
      resize,
      Array.from({ length: 210 }, (_, n) => ({ id: String(n) })),
    )
    const count = async (limit: string) =>
      (await scene.get<{ jobs: unknown[] }>(`api/jobs?pillar=hot&limit=${limit}`)).jobs.length
    expect([await count('1'), await count('0'), await count('999999999'), await count('')]).toEqual([1, 1, 200, 50])
    expect(await scene.refusal('api/jobs?pillar=hot&limit=-1')).toBe('400 request-invalid')
    expect(await scene.refusal('api/jobs?pillar=hot&limit=1e9')).toBe('400 request-invalid')
  })

  it('a storage that does not answer in time is no reason to wait longer', async () => {
    const scene = open({ limits: { queryDeadline: '1s' } })
    await scene.chokaq.ready()
    scene.world.fault = (call) => (call === 'inspector.list' ? 'hang' : 'none')
    const pending = scene.refusal('api/jobs?pillar=hot')
    await scene.world.runtime.advance(1_000)
    expect(await pending).toBe('503 too-slow')
  })

  it('what went wrong inside is for the log, not for the page', async () => {
    const scene = open()
    scene.world.fault = (call) => (call === 'inspector.workers' ? 'before' : 'none')
    const response = await scene.ask('api/workers')
    expect([response.status, await response.text()]).toEqual([503, expect.not.stringContaining('inspector')])
    expect(scene.errors).toHaveLength(1)
  })
})

const odd = [
  `'`,
  `' OR '1'='1`,
  `'; DROP TABLE chokaq_jobs_hot; --`,
  '$$',
  '$1',
  '?',
  '%',
  '_',
  '\\',
  '\u0000',
  '\ud800',
  '\u202e',
  '[object Object]',
  '__proto__',
  'constructor',
  'x'.repeat(64),
  'é'.repeat(250),
  'x'.repeat(501),
]

describe.each(storages)('odd input on $name', (kind) => {
  const opened = decks(kind)
  const positions = ['type', 'queue', 'key', 'tag', 'state', 'reason', 'review', 'from', 'before', 'cursor', 'limit']

  it('in any place of a list is answered with 200 or 400, and the tables stand', async () => {
    const scene = opened()
    await scene.chokaq.enqueue(resize, { id: 'p1' })
    for (const name of positions) {
      for (const value of odd) {
        for (const [address, pillar] of [
          ['jobs', 'hot'],
          ['jobs/count', 'archive'],
          ['export', 'dlq'],
        ] as const) {
          const query = new URLSearchParams({ pillar, [name]: value }).toString()
          const response = await scene.ask(`api/${address}?${query}`)
          await response.text()
          expect([address, name, value, [200, 400].includes(response.status)]).toEqual([address, name, value, true])
        }
      }
    }
    expect((await scene.get<{ jobs: unknown[] }>('api/jobs?pillar=hot')).jobs).toHaveLength(1)
    expect(scene.errors).toEqual([])
  })

  it('as an id or a name is answered with 4xx, or with what has that name', async () => {
    const scene = opened()
    for (const value of odd) {
      const id = encodeURIComponent(value.toWellFormed())
      for (const path of [
        `jobs/${id}`,
        `reviews/${id}`,
        `audit?subject=${id}`,
        `metrics?type=${id}`,
        `reviews?type=${id}`,
      ]) {
        const response = await scene.ask(`api/${path}`)
        await response.text()
        expect([path, response.status < 500]).toEqual([path, true])
      }
      for (const path of [`jobs/${id}/cancel`, `jobs/${id}/retry-now`, `reviews/${id}/retry`, `queues/${id}`]) {
        const response = await scene.ask(`api/${path}`, { body: { note: value, revision: 1, paused: false } })
        await response.text()
        expect([path, response.status < 500]).toEqual([path, true])
      }
    }
    expect(scene.errors).toEqual([])
  })

  it.each(['', 'x', 'bnVsbA', 'e30', 'WzEsMl0', '[1,"x"]', '0', '\u0000', 'a'.repeat(501)])(
    'the forged cursor %j is a 400',
    async (cursor) => {
      const scene = opened()
      const query = new URLSearchParams({ pillar: 'hot', cursor }).toString()
      const expected = cursor === '' ? 200 : 400
      expect((await scene.ask(`api/jobs?${query}`)).status).toBe(expected)
    },
  )

  it('a filter of a bulk act that is no filter is refused, whatever it is called', async () => {
    const scene = opened()
    await scene.chokaq.enqueue(resize, { id: 'p1' })
    for (const filter of [
      { typo: 'x' },
      { constructor: 'x' },
      [],
      'x',
      { type: 1 },
      JSON.parse('{"__proto__":"x"}'),
    ] as unknown[]) {
      const body = { act: 'cancel', filter, note: '', limit: 10, phrase: 'cancel 1' }
      expect((await scene.ask('api/bulk/run', { body })).status).toBe(400)
      expect((await scene.ask('api/bulk/preview', { body })).status).toBe(400)
    }
    expect((await scene.chokaq.queues.list())[0]).toMatchObject({ pendingCount: 1 })
  })
})
