// What is hidden is hidden everywhere: in lists, details, exports, calls of effects, the audit log, and in texts that
// quote it. And what is dangerous for whoever reads an export is made harmless.
import fc from 'fast-check'
import { defineJob } from 'chokaq'
import { defineHandler } from 'chokaq/worker'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { csvCell, csvLine } from '../../src/deck/csv.ts'
import { hideValues, Redaction, restoreRedacted } from '../../src/deck/redact.ts'
import type { ActAnswer, JobDetail, JobPageView } from '../../src/deck/wire-jobs.ts'
import { ada } from '../engine/world.ts'
import { storages } from '../engine/storages.ts'
import { decks } from './deck-scene.ts'

const secret = '4111111111111111'
const payer = defineJob({
  type: 'payer.charge.v1',
  payload: z.looseObject({ card: z.object({ number: z.string() }), email: z.string() }),
  key: (p) => p.email,
  duplicateWindow: '1d',
})
const charge = defineHandler(payer, {
  sideEffects: 'unguarded',
  whenInterrupted: 'review',
  retry: { attempts: 1 },
  run: (p) => Promise.reject(new TypeError(`the bank refused ${p.card.number} of ${p.email}`)),
})
const of = { type: 't', what: 'payload' } as const

describe.each(storages)('redaction on $name', (kind) => {
  const open = decks(kind)

  it.each([
    ['paths', ['card.number', '*.email', 'email']],
    ['anywhere', ['**.number', '**.email']],
    [
      'a function',
      (value: unknown) => (typeof value === 'object' ? { ...value, card: undefined, email: undefined } : value),
    ],
  ])('by %s leaves no trace in any answer', async (_how, redact) => {
    const scene = open({ redact: redact as string[], jobs: [payer] })
    const { id } = await scene.chokaq.enqueue(payer, {
      card: { number: secret },
      email: 'eve@example.com',
      city: 'Rome',
    })
    await scene.world.drain([charge])
    await scene.chokaq.dlq
      .resurrect(id, { mode: 'new-operation', absence: `${secret} never left` }, ada)
      .catch(() => undefined)
    for (const path of [
      'jobs?pillar=dlq',
      `jobs/${id}`,
      'reviews',
      `reviews/${id}`,
      'export?pillar=dlq&format=csv',
      'export?pillar=dlq&format=jsonl',
      'jobs?pillar=hot',
    ]) {
      const text = await (await scene.ask(`api/${path}`)).text()
      expect([path, text.includes(secret), text.includes('eve@example.com')]).toEqual([path, false, false])
    }
    const { job } = await scene.get<JobDetail>(`api/jobs/${id}`)
    expect(job.payload).toContain('Rome')
    expect(job.message).toMatch(/the bank refused \[redacted\]/)
  })

  it('keeps what the editor did not see', async () => {
    const scene = open({ redact: ['card.number'], jobs: [payer] })
    const { id } = await scene.chokaq.enqueue(payer, {
      card: { number: secret },
      email: 'eve@example.com',
      city: 'Rome',
    })
    await scene.world.drain([
      defineHandler(payer, {
        sideEffects: 'unique-constraint',
        whenInterrupted: 'resume',
        retry: { attempts: 1 },
        run: () => Promise.reject(new TypeError('no')),
      }),
    ])
    const edit = (payload: unknown) => ({ mode: 'continue', note: '', revision: 1, payload: JSON.stringify(payload) })
    const moved = edit({ card: { number: 'x' }, email: '[redacted]', city: 'Oslo' })
    expect(await scene.refusal(`api/jobs/${id}/resurrect`, { body: moved })).toBe('422 payload-invalid')
    const kept = edit({ card: { number: '[redacted]' }, email: 'eve@example.com', city: 'Oslo' })
    expect(await scene.post<ActAnswer>(`api/jobs/${id}/resurrect`, kept)).toMatchObject({ done: true })
    expect(JSON.parse((await scene.world.job(id)).payload ?? '')).toEqual({
      card: { number: secret },
      email: 'eve@example.com',
      city: 'Oslo',
    })
  })

  it('shows own members with dangerous names as data', async () => {
    const scene = open({ redact: ['hidden'] })
    const text = '{"__proto__":{"admin":true},"constructor":1,"toJSON":"x","then":1,"hasOwnProperty":2,"hidden":"abc"}'
    const loose = defineJob({ type: 'loose.v1', payload: z.unknown() })
    const { id } = await scene.chokaq.enqueue(loose, JSON.parse(text))
    const { job } = await scene.get<JobDetail>(`api/jobs/${id}`)
    expect(job.payload).toBe(text.replace('"abc"', '"[redacted]"'))
    expect(({} as { admin?: boolean }).admin).toBeUndefined()
  })

  it('answers the XSS corpus as JSON that no browser takes for a page', async () => {
    const scene = open()
    const corpus = [
      '<script>alert(1)</script>',
      '"><img src=x onerror=alert(1)>',
      'javascript:alert(1)',
      '\u202etxt.exe',
      '\u001b[31m',
      '{{7*7}}',
      '=cmd|calc',
    ]
    const job = defineJob({ type: 'mail.v1', payload: z.unknown(), key: (p) => String(p), duplicateWindow: '1d' })
    for (const text of corpus)
      await scene.chokaq.enqueue(job, text, { queue: `q ${text}`.replaceAll('\u001b', ''), tags: [text] })
    const page = await scene.ask('api/jobs?pillar=hot')
    expect(page.headers.get('content-type')).toBe('application/json')
    expect(page.headers.get('x-content-type-options')).toBe('nosniff')
    expect(((await page.json()) as JobPageView).jobs).toHaveLength(corpus.length)
    const csv = await scene.ask('api/export?pillar=hot')
    expect(csv.headers.get('content-disposition')).toMatch(/^attachment/)
    expect(await csv.text()).not.toMatch(/(^|,)"?[=+@\t\r-][^,]*cmd/m)
  })
})

describe('a path', () => {
  const show = (paths: readonly string[], value: unknown): unknown =>
    JSON.parse(new Redaction(paths).json(JSON.stringify(value), of).text)

  it.each([
    [['a.b'], { a: { b: 1, c: 2 } }, { a: { b: '[redacted]', c: 2 } }],
    [['*.b'], { a: { b: 1 }, b: 2 }, { a: { b: '[redacted]' }, b: 2 }],
    [['**.b'], { a: { x: { b: 1 } }, b: 2 }, { a: { x: { b: '[redacted]' } }, b: '[redacted]' }],
    [['a.b'], { a: [{ b: 1 }, { b: 2 }] }, { a: [{ b: '[redacted]' }, { b: '[redacted]' }] }],
    [['a.0'], { a: ['x', 'y'] }, { a: ['[redacted]', 'y'] }],
    [['a'], { a: { deep: ['x'] } }, { a: '[redacted]' }],
    [['a.b'], { a: null, b: 1 }, { a: null, b: 1 }],
    [['a'], 'text', 'text'],
    [['__proto__'], JSON.parse('{"__proto__":1}') as unknown, JSON.parse('{"__proto__":"[redacted]"}') as unknown],
  ])('%j of %j', (paths, value, shown) => {
    expect(show(paths, value)).toEqual(shown)
  })

  it('hides the values it took out in texts beside it, the longest first', () => {
    const { hidden } = new Redaction(['a']).json('{"a":["abc","abcdef",12345,"x"]}', of)
    expect(
      hideValues(
        'abcdef abc 12345 x',
        [...hidden].sort((a, b) => b.length - a.length),
      ),
    ).toBe('[redacted] [redacted] [redacted] x')
  })

  it('what is no JSON is hidden as a whole', () => {
    expect(new Redaction(['a']).json('{"a":', of).text).toBe('"[redacted]"')
  })

  it('a function that throws hides everything', () => {
    const redaction = new Redaction(() => {
      throw new TypeError('no')
    })
    expect(redaction.json('{"a":1}', of).text).toBe('"[redacted]"')
  })

  it('what was shown and comes back unchanged is what was stored', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (stored) => {
        const text = JSON.stringify(stored)
        const shown: unknown = JSON.parse(new Redaction(['**.a', 'b.*']).json(text, of).text)
        expect(JSON.stringify(restoreRedacted(shown, shown, JSON.parse(text))?.value)).toBe(text)
      }),
    )
  })
})

describe('a cell of a CSV', () => {
  it.each(['=1+1', '+1', '-1', '@sum', '\t=1', '\r=1', '\n=1', ' =1', '\u00a0=1', '|calc', '%0A', '\uff1d1'])(
    '%j is no formula',
    (text) => {
      expect(csvCell(text)).toMatch(/^"?'/)
    },
  )

  it.each(['plain', 'a=b', '2026-01-01', 'x-1', ''])('%j stays as it is', (text) => {
    expect(csvCell(text)).toBe(text)
  })

  it('quotes what would end it', () => {
    expect(csvLine(['a,b', 'say "hi"', 'two\nlines', null, 3, true])).toBe(
      '"a,b","say ""hi""","two\nlines",,3,true\r\n',
    )
  })
})
