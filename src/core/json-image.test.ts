import fc from 'fast-check'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { parseJson, toJsonText } from './json-image.ts'

const limits = { maxBytes: 1_000, byteLength: (text: string) => Buffer.byteLength(text) }

function textOf(value: unknown, maxBytes = limits.maxBytes): string {
  return toJsonText(value, 'The payload', { ...limits, maxBytes })
}

function nested(depth: number): unknown {
  let value: unknown = 'leaf'
  for (let i = 0; i < depth; i++) value = [value]
  return value
}

class Money {
  readonly cents: number
  constructor(cents: number) {
    this.cents = cents
  }
}

describe('what is kept', () => {
  test.each<[string, unknown, string]>([
    ['null', null, 'null'],
    ['undefined at the top', undefined, 'null'],
    ['falsy values', [0, '', false, null], '[0,"",false,null]'],
    ['-0 as 0', [-0], '[0]'],
    ['extreme numbers', [1e21, 5e-324, 0.1], '[1e+21,5e-324,0.1]'],
    ['undefined in an array, holes included', [undefined, , 1], '[null,null,1]'], // eslint-disable-line no-sparse-arrays
    ['undefined members dropped', { a: undefined, b: 1 }, '{"b":1}'],
    ['empty containers', [{}, []], '[{},[]]'],
    ['keys in their order', { b: 1, a: 2 }, '{"b":1,"a":2}'],
    ['NUL and control characters', 'a\0b\u001b\n', '"a\\u0000b\\u001b\\n"'],
    ['whole surrogate pairs', { '😀': '😀' }, '{"😀":"😀"}'],
    ['texts as they are, not normalised', 'e\u0301', '"e\u0301"'],
    ['a Date', new Date(0), '"1970-01-01T00:00:00.000Z"'],
    ['a Date of another realm', runInNewContext('new Date(0)'), '"1970-01-01T00:00:00.000Z"'],
    ['objects of another realm', runInNewContext('({ a: [1] })'), '{"a":[1]}'],
    ['a URL', new URL('https://example.org/'), '"https://example.org/"'],
    ['a Buffer, which has a toJSON', Buffer.from('a'), '{"type":"Buffer","data":[97]}'],
    ['an error with a toJSON', Object.assign(new TypeError('x'), { toJSON: () => 'x' }), '"x"'],
    ['an instance of a class', new Money(5), '{"cents":5}'],
    ['an object without a prototype', Object.assign(Object.create(null) as object, { a: 1 }), '{"a":1}'],
    ['boxed primitives', [Object(1), Object('x'), Object(false)], '[1,"x",false]'],
    ['own enumerable members only', Object.create({ inherited: 1 }, { hidden: { value: 1 } }), '{}'],
    ['symbol keys left out', { [Symbol('x')]: 1 }, '{}'],
    ['the same object twice', [limits.byteLength.length, ...Array<object>(2).fill({ a: 1 })], '[1,{"a":1},{"a":1}]'],
  ])('%s', (_, value, text) => {
    expect(textOf(value)).toBe(text)
  })

  test.each<[string, unknown, string]>([
    ['is walked again', { toJSON: () => ({ at: new Date(0) }) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ['may return something with a toJSON', { toJSON: () => new Date(0) }, '"1970-01-01T00:00:00.000Z"'],
    [
      'gets its key',
      { a: { toJSON: (key: string) => key }, b: [{ toJSON: (key: string) => key }] },
      '{"a":"a","b":["0"]}',
    ],
    ['gets an empty key at the top', { toJSON: (key: string) => [key] }, '[""]'],
    ['that returns undefined drops the member', { a: { toJSON: () => undefined } }, '{}'],
    ['that returns undefined at the top is null', { toJSON: () => undefined }, 'null'],
    ['that is no function is a member', { toJSON: 1 }, '{"toJSON":1}'],
  ])('what toJSON returns %s', (_, value, text) => {
    expect(textOf(value)).toBe(text)
  })

  test('an own toJSON that returns its object is not written itself', () => {
    const value = {
      a: 1,
      toJSON(): unknown {
        return this
      },
    }
    expect(textOf(value)).toBe('{"a":1}')
  })

  test('200 levels, no more', () => {
    expect(textOf(nested(200))).toBe(`${'['.repeat(200)}"leaf"${']'.repeat(200)}`)
    expect(() => textOf(nested(201))).toThrow('nesting deeper than 200 at $[0][0]')
  })

  test('a member called __proto__ is data on the way in and out', () => {
    const text = '{"__proto__":{"admin":true},"a":{"__proto__":1}}'
    const value = parseJson(text)
    expect(textOf(value)).toBe(text)
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect((value as { admin?: boolean }).admin).toBeUndefined()
    expect(Object.keys(value as object)).toEqual(['__proto__', 'a'])
  })

  test('writes what JSON.stringify writes, and never changes the value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false, stringUnit: 'grapheme' }), (value) => {
        const before = structuredClone(value)
        expect(textOf(value, 1e6)).toBe(JSON.stringify(value))
        expect(value).toEqual(before)
        expect(textOf(parseJson(textOf(value, 1e6)), 1e6)).toBe(textOf(value, 1e6))
      }),
    )
  })

  test('takes a frozen value', () => {
    expect(textOf(Object.freeze({ a: Object.freeze([1]) }))).toBe('{"a":[1]}')
  })
})

describe('what is refused, with its path', () => {
  const circular: Record<string, unknown> = { a: {} }
  circular['a'] = { b: [circular] }
  const endless = {
    toJSON: () => ({ ...endless }),
  }
  const throwing = (): never => {
    throw new TypeError('no')
  }

  test.each<[string, unknown, string, string]>([
    ['BigInt', { a: [0, 0, 0, { b: 10n }] }, '$.a[3].b', 'a BigInt (convert it to a text)'],
    ['boxed BigInt', [Object(1n)], '$[0]', 'a BigInt (convert it to a text)'],
    ['NaN', { n: NaN }, '$.n', 'NaN'],
    ['Infinity', [Infinity], '$[0]', 'Infinity'],
    ['-Infinity', -Infinity, '$', '-Infinity'],
    ['boxed NaN', [Object(NaN)], '$[0]', 'NaN'],
    ['a function', { f: () => 1 }, '$.f', 'a function'],
    ['a symbol', [Symbol('x')], '$[0]', 'a symbol'],
    ['a circular object', circular, '$.a.b[0]', 'a circular reference'],
    ['an endless toJSON', endless, '$', 'nesting deeper than 200'],
    ['an invalid Date', { at: new Date(NaN) }, '$.at', 'an invalid Date'],
    ['a Map', { m: new Map() }, '$.m', 'a Map (convert it, for example with Object.fromEntries(map))'],
    ['a Set', new Set(), '$', 'a Set (convert it, for example with [...set])'],
    [
      'a Map of another realm',
      [runInNewContext('new Map()')],
      '$[0]',
      'a Map (convert it, for example with Object.fromEntries(map))',
    ],
    ['a promise', { p: Promise.resolve(1) }, '$.p', 'a Promise (await it first)'],
    ['an error', { e: new TypeError('x') }, '$.e', 'an Error (store its name and message)'],
    ['bytes', new Uint8Array(2), '$', 'an Uint8Array (convert it, for example to base64)'],
    ['half a pair in a text', { s: 'a\ud83d' }, '$.s', 'half a surrogate pair (a character cut in two)'],
    ['half a pair in a boxed text', [Object('\ude00')], '$[0]', 'half a surrogate pair (a character cut in two)'],
    ['half a pair in a key', { 'a\ude00': 1 }, '$["a\\ude00"]', 'half a surrogate pair (a character cut in two)'],
    ['a toJSON that returns a BigInt', { a: { toJSON: () => 1n } }, '$.a', 'a BigInt (convert it to a text)'],
    ['a toJSON that throws', [{ toJSON: throwing }], '$[0]', 'reading it threw an error'],
    ['a false tag', { a: { [Symbol.toStringTag]: 'Number', __proto__: {} } }, '$.a', 'reading it threw an error'],
  ])('%s', (_, value, path, problem) => {
    expect(() => textOf(value)).toThrow(
      expect.objectContaining({ code: 'CHOKAQ_NOT_JSON', details: { what: 'The payload', path, problem } }),
    )
  })

  test('a getter that throws, with its cause', () => {
    const cause = new TypeError('no')
    const value = Object.defineProperty({}, 'secret', {
      enumerable: true,
      get() {
        throw cause
      },
    })
    expect(() => textOf({ a: value })).toThrow(
      expect.objectContaining({
        code: 'CHOKAQ_NOT_JSON',
        details: { what: 'The payload', path: '$.a.secret', problem: 'reading it threw an error' },
        cause,
      }),
    )
  })

  test('a getter is read once: what was checked is what is written', () => {
    let reads = 0
    const value = {
      get a(): unknown {
        return reads++ === 0 ? 1 : 10n
      },
    }
    expect(textOf(value)).toBe('{"a":1}')
  })
})

describe('the size', () => {
  test('counts bytes, and the limit itself fits', () => {
    expect(textOf('ä'.repeat(4), 10)).toBe('"ääää"')
    expect(() => textOf('ä'.repeat(4), 9)).toThrow(
      expect.objectContaining({
        code: 'CHOKAQ_TOO_LARGE',
        details: { what: 'The payload', bytes: 10, maxBytes: 9 },
      }),
    )
  })

  test('a small object that unfolds to 2^100 texts is stopped', () => {
    let value: unknown = 'x'
    for (let i = 0; i < 100; i++) value = [value, value]
    expect(() => textOf(value)).toThrow(expect.objectContaining({ code: 'CHOKAQ_TOO_LARGE' }))
  })

  test('so is a list of a billion holes', () => {
    expect(() => textOf(new Array(1e9))).toThrow(expect.objectContaining({ code: 'CHOKAQ_TOO_LARGE' }))
  })
})

test('parseJson throws a SyntaxError for what is no JSON', () => {
  expect(() => parseJson('{')).toThrow(SyntaxError)
  expect(parseJson('null')).toBeNull()
})
