import fc from 'fast-check'
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { effectKey, keyHash, keyPrefix, keyProblem, keyScopeOf } from './key-canon.ts'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const asIs = (text: string): string => text

describe('keyProblem', () => {
  test.each<[unknown, string]>([
    [undefined, 'undefined'],
    [null, 'null'],
    [0, 'a number'],
    [42, 'a number'],
    [NaN, 'NaN'],
    [10n, 'a BigInt'],
    [true, 'a boolean'],
    [Symbol('k'), 'a symbol'],
    [() => 'k', 'a function'],
    [{}, 'an object'],
    [['a'], 'an array'],
    [new Date(0), 'a Date'],
    [Promise.resolve('k'), 'a Promise'],
    [Object('k'), 'a String'],
    ['', 'an empty text'],
    ...[' ', '\t\n', '\u00a0', '\u3000', '\u200b', '\ufeff', '\u2800', '\u3164', '\0', '\u00ad', ' \u200d '].map(
      (blank): [string, string] => [blank, 'a blank text'],
    ),
    ['undefined', 'the text "undefined"'],
    ['null', 'the text "null"'],
    ['NaN', 'the text "NaN"'],
    ['Invalid Date', 'the text "Invalid Date"'],
    ['[object Object]', 'the text "[object Object]"'],
    ['[object Promise]', 'the text "[object Promise]"'],
    [' undefined\n', 'the text " undefined\\n"'],
    ['\u00a0[object Object] ', 'the text "\u00a0[object Object] "'],
    ['null:null', 'the text "null:null"'],
    ['undefined-null/NaN', 'the text "undefined-null/NaN"'],
    ['_null_', 'the text "_null_"'],
    ['[object Object]|[object Object]', 'the text "[object Object]|[object Object]"'],
    [',', 'the text ",", made only of separators'],
    [':::', 'the text ":::", made only of separators'],
    ['- | -', 'the text "- | -", made only of separators'],
    ['order-\ud83d', 'a text with half a surrogate pair'],
  ])('%o is %s', (key, problem) => {
    expect(keyProblem(key)).toBe(problem)
  })

  test.each([
    '0',
    'false',
    'a',
    'order-1',
    'null-5',
    'undefined1',
    'nullable',
    'Null',
    'user:null',
    'ключ',
    '注文',
    '😀',
    '👩‍👩‍👧',
    'a b',
    '\u{10ffff}',
    'x'.repeat(100_000),
    '00000000-0000-0000-0000-000000000000',
  ])('%# is a good key', (key) => {
    expect(keyProblem(key)).toBeUndefined()
  })

  test('is never huge', () => {
    expect(keyProblem('null,'.repeat(100_000))?.length).toBeLessThan(100)
    expect(keyProblem({ [Symbol.toStringTag]: 'x'.repeat(100_000) })?.length).toBeLessThan(100)
  })
})

describe('keyHash', () => {
  test('hashes a versioned text of length-prefixed parts', () => {
    expect(keyHash({ scope: 'mail', key: 'a|b' }, asIs)).toBe('chokaq-key-v1|-|4:mail|3:a|b')
    expect(keyHash({ tenant: 't', scope: 'mail', key: '1' }, asIs)).toBe('chokaq-key-v1|1:t|4:mail|1:1')
    expect(keyHash({ scope: 'mail', key: '1' }, sha256)).toMatch(/^[0-9a-f]{64}$/)
  })

  test('E20 tells long keys and keys of other letters apart by all of their text, and shows their beginning', () => {
    const long = 'x'.repeat(300)
    const keys = [long, `${long}1`, `${long}2`, 'заказ-42', 'заказ-43', '注文-42', 'ORDER-42', 'order-42']
    expect(new Set(keys.map((key) => keyHash({ scope: 's', key }, sha256))).size).toBe(keys.length)
    expect(keys.map(keyPrefix)).toEqual([...Array.from({ length: 3 }, () => 'x'.repeat(64)), ...keys.slice(3)])
  })

  test('is the same for the two Unicode forms of a text', () => {
    expect(keyHash({ scope: 's', key: 'e\u0301' }, sha256)).toBe(keyHash({ scope: 's', key: 'é' }, sha256))
  })

  test('differs wherever a part differs, however the parts are cut', () => {
    const part = fc.string({ unit: fc.constantFrom('a', '|', ':', '1', '-'), maxLength: 6 })
    const parts = fc.record({ tenant: part, scope: part, key: part }, { requiredKeys: ['scope', 'key'] })
    fc.assert(
      fc.property(parts, parts, (a, b) => {
        const same = a.tenant === b.tenant && a.scope === b.scope && a.key === b.key
        expect(keyHash(a, asIs) === keyHash(b, asIs)).toBe(same)
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('keyPrefix', () => {
  test.each([
    ['order-1', 'order-1'],
    ['', ''],
    ['a\0b\nc\u001b[31m\u0085', 'a\ufffdb\ufffdc\ufffd[31m\ufffd'],
    ['a\u2028b\u202ec', 'a\ufffdb\ufffdc'],
    ['\ud83d', '\ufffd'],
    ['e\u0301', 'é'],
    ['x'.repeat(64), 'x'.repeat(64)],
    ['x'.repeat(65), 'x'.repeat(64)],
    [`${'x'.repeat(62)}😀y`, `${'x'.repeat(62)}😀`],
    [`${'x'.repeat(63)}😀`, 'x'.repeat(63)],
    ['😀'.repeat(100), '😀'.repeat(32)],
    ['e\u0301'.repeat(100), 'é'.repeat(64)],
  ])('%j is shown as %j', (key, prefix) => {
    expect(keyPrefix(key)).toBe(prefix)
  })

  test('always is a short text that can be stored', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (key) => {
        const prefix = keyPrefix(key)
        expect(prefix.length).toBeLessThanOrEqual(64)
        expect(prefix).not.toMatch(/[\p{Cc}\p{Surrogate}]/u)
      }),
    )
  })
})

test.each([
  ['payment.capture.v1', 'payment.capture'],
  ['payment.capture.v12', 'payment.capture'],
  ['payment.capture', 'payment.capture'],
  ['payment.v1.capture', 'payment.v1.capture'],
  ['payment.v1.v2', 'payment.v1'],
  ['payment.capture.v', 'payment.capture.v'],
  ['payment.capture.V1', 'payment.capture.V1'],
  ['paymentv1', 'paymentv1'],
  ['v1', 'v1'],
  ['.v1', '.v1'],
  ['', ''],
])('the scope of %j is %j', (type, scope) => {
  expect(keyScopeOf(type)).toBe(scope)
})

describe('effectKey', () => {
  const parts = { keyHash: 'h', jobId: 'j', generation: 1, name: 'charge' }

  test('is a lower-case UUID of version 8', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(), fc.string(), (jobId, generation, name) => {
        expect(effectKey({ jobId, generation, name }, sha256)).toMatch(
          /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
        )
      }),
    )
  })

  test('is the same for every job of the same key, and stays so', () => {
    expect(effectKey(parts, sha256)).toBe(effectKey({ ...parts, jobId: 'other' }, sha256))
    // A change of this value would send new keys for operations that providers already know.
    expect(effectKey(parts, sha256)).toMatchInlineSnapshot(`"43ae7ea6-dfb9-8050-af31-2c5393e46dee"`)
  })

  test('differs for another key, job, generation or name', () => {
    const { keyHash: _, ...unkeyed } = parts
    const keys = [
      parts,
      { ...parts, keyHash: 'h2' },
      { ...parts, generation: 2 },
      { ...parts, name: 'charge#2' },
      unkeyed,
      { ...unkeyed, jobId: 'j2' },
      { ...unkeyed, jobId: 'h' },
    ].map((each) => effectKey(each, sha256))
    expect(new Set(keys).size).toBe(keys.length)
  })
})
