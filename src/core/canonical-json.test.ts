import fc from 'fast-check'
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { canonicalText, differingPaths, fingerprintOf, fingerprintVersion, sameFingerprint } from './canonical-json.ts'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** The same value with the keys of every object in another order. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, member]) => [key, shuffled(member)] as const)
  return Object.fromEntries(entries.reverse())
}

describe('canonicalText', () => {
  test.each<[string, unknown, string]>([
    ['sorts keys by code unit', { b: 1, a: 1, A: 1, '10': 1, '9': 1 }, '{"10":1,"9":1,"A":1,"a":1,"b":1}'],
    [
      'sorts as RFC 8785 does',
      { '\u20ac': 1, '\r': 1, '\ufb33': 1, '1': 1, '😀': 1, '\u0080': 1, ö: 1 },
      '{"\\r":1,"1":1,"\u0080":1,"ö":1,"\u05d3\u05bc":1,"€":1,"😀":1}',
    ],
    ['normalises texts and keys', { 'e\u0301': 'e\u0301' }, '{"é":"é"}'],
    ['keeps both of two keys that become one, in a fixed order', { é: 2, 'e\u0301': 1 }, '{"é":1,"é":2}'],
    ['writes -0 as 0', [-0, 0], '[0,0]'],
    ['writes numbers as ECMAScript does', [1.0, 1e30, 4.5, 0.002, 1e-27], '[1,1e+30,4.5,0.002,1e-27]'],
    ['drops undefined members', { a: undefined }, '{}'],
    ['keeps null apart from undefined', { a: null }, '{"a":null}'],
    ['writes a Date as ISO text', { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ['allows half a surrogate pair', 'a\ud83d', '"a\\ud83d"'],
    ['writes undefined as null', undefined, 'null'],
    ['keeps __proto__ as data', JSON.parse('{"__proto__":{"b":1,"a":2}}'), '{"__proto__":{"a":2,"b":1}}'],
  ])('%s', (_, value, text) => {
    expect(canonicalText(value)).toBe(text)
  })

  test.each<[unknown, string]>([
    [{ a: 1n }, '$.a'],
    [[NaN], '$[0]'],
    [Infinity, '$'],
    [new Map([[1, 2]]), '$'],
    [{ s: new Set() }, '$.s'],
    [{ at: new Date(NaN) }, '$.at'],
    [{ f: () => 1 }, '$.f'],
  ])('refuses %o at %s', (value, path) => {
    expect(() => canonicalText(value)).toThrow(
      expect.objectContaining({
        code: 'CHOKAQ_NOT_JSON',
        details: expect.objectContaining({ what: 'The value to compare', path }) as unknown,
      }),
    )
  })

  test('E16 keys that some orders call equal have one order', () => {
    for (const [one, other] of [
      ['a', 'A'],
      ['e', 'é'],
      ['ss', 'ß'],
      ['i', 'İ'],
      ['co-op', 'coop'],
      ['a', 'a\u200d'],
    ] as const) {
      expect(canonicalText({ [one]: 1, [other]: 2 })).toBe(canonicalText({ [other]: 2, [one]: 1 }))
    }
  })

  test('E15 what a trip through JSON makes of a value is the same value', () => {
    const sent = { b: new Date(0), a: -0, gone: undefined, text: 'e\u0301', list: [undefined, 1.0] }
    const stored: unknown = JSON.parse(JSON.stringify(sent))
    expect(canonicalText(stored)).toBe(canonicalText(sent))
    expect(canonicalText(shuffled(stored))).toBe(canonicalText(sent))
    expect(canonicalText({ ...sent, a: 1 })).not.toBe(canonicalText(sent))
    for (const value of [1n, NaN, new Map(), new Set()]) {
      expect(() => canonicalText({ value })).toThrow(expect.objectContaining({ code: 'CHOKAQ_NOT_JSON' }) as Error)
    }
  })

  test('is the same for every order of keys, and after a trip through JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalText(value)
        expect(canonicalText(shuffled(value))).toBe(text)
        expect(canonicalText(JSON.parse(JSON.stringify(value)))).toBe(text)
        expect(canonicalText(JSON.parse(text))).toBe(text)
      }),
    )
  })
})

describe('fingerprints', () => {
  test('are a version and a hash', () => {
    expect(fingerprintOf({ b: 1, a: 2 }, sha256)).toBe(`v1:${sha256('{"a":2,"b":1}')}`)
    expect(fingerprintOf(undefined, sha256)).toBe(fingerprintOf(null, sha256))
  })

  test('differ for different values', () => {
    const texts = [0, '0', false, null, '', [], {}, [null], { a: null }, 'null'].map((value) =>
      fingerprintOf(value, sha256),
    )
    expect(new Set(texts).size).toBe(texts.length)
  })

  test.each([
    ['v1:abc', 'v1'],
    ['v12:a:b', 'v12'],
    ['abc', ''],
    ['', ''],
  ])('the version of %j is %j', (fingerprint, version) => {
    expect(fingerprintVersion(fingerprint)).toBe(version)
  })

  test.each([
    ['v1:a', 'v1:a', 'same'],
    ['v1:a', 'v1:b', 'different'],
    ['v1:a', 'v2:a', 'incomparable'],
    ['v1:a', 'v11:a', 'incomparable'],
    ['v1:a', null, 'incomparable'],
    [undefined, 'v1:a', 'incomparable'],
    [undefined, undefined, 'incomparable'],
    ['a', 'a', 'incomparable'],
    ['', '', 'incomparable'],
  ] as const)('%j and %j are %s', (a, b, answer) => {
    expect(sameFingerprint(a, b)).toBe(answer)
  })
})

describe('differingPaths', () => {
  test.each<[string, unknown, unknown, readonly string[]]>([
    ['nothing differs', { a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }, []],
    ['order and form do not count', { a: -0, b: 'é', c: undefined }, { b: 'e\u0301', a: 0 }, []],
    ['a member', { amount: 1, b: 1 }, { amount: 2, b: 1 }, ['$.amount']],
    ['deep in a list', { items: [0, 0, { id: 1 }] }, { items: [0, 0, { id: 2 }] }, ['$.items[2].id']],
    ['the type of a value', { a: [1] }, { a: { 0: 1 } }, ['$.a']],
    ['a text and a number', { a: 1 }, { a: '1' }, ['$.a']],
    ['a container and null', { a: {} }, { a: null }, ['$.a']],
    ['members that only one has', { a: 1 }, { b: 1 }, ['$.a', '$.b']],
    ['null and missing', { a: null }, {}, ['$.a']],
    ['longer lists', [1], [1, 2, 3], ['$[1]', '$[2]']],
    ['everything', 1, 2, ['$']],
    ['undefined and null', undefined, null, []],
    ['__proto__ as data', JSON.parse('{"__proto__":1}'), {}, ['$.__proto__']],
    ['a name every object inherits', { constructor: 1 }, {}, ['$.constructor']],
  ])('%s', (_, a, b, paths) => {
    expect(differingPaths(a, b)).toEqual(paths)
    expect(differingPaths(b, a)).toEqual(paths)
  })

  test('stops at the count', () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, i]))
    expect(differingPaths(many, {})).toHaveLength(10)
    expect(differingPaths({ a: many }, { a: {} }, 3)).toEqual(['$.a.k0', '$.a.k1', '$.a.k10'])
    expect(differingPaths(many, {}, 0)).toEqual([])
  })

  test('never holds a value', () => {
    expect(differingPaths({ iban: 'SECRET-1' }, { iban: 'SECRET-2' }).join()).not.toContain('SECRET')
  })

  test('is empty exactly when the fingerprints agree', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        const same = sameFingerprint(fingerprintOf(a, sha256), fingerprintOf(b, sha256))
        expect(differingPaths(a, b).length === 0).toBe(same === 'same')
      }),
    )
  })
})
