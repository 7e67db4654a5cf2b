import { expect, test } from 'vitest'
import { kindOf, quoted, shortValue, tagOf } from './describe-value.ts'

const hostile = new Proxy(
  {},
  {
    get() {
      throw new TypeError('trap')
    },
  },
)

test.each<[unknown, string]>([
  [undefined, 'undefined'],
  [null, 'null'],
  ['x', 'a text'],
  [1, 'a number'],
  [NaN, 'NaN'],
  [1n, 'a BigInt'],
  [true, 'a boolean'],
  [Symbol('x'), 'a symbol'],
  [() => 1, 'a function'],
  [{}, 'an object'],
  [[], 'an array'],
  [new Date(0), 'a Date'],
  [new RangeError('x'), 'an Error'],
  [{ [Symbol.toStringTag]: 'x'.repeat(5_000) }, `a ${'x'.repeat(60)}…`],
])('kindOf %#: %o is %s', (value, kind) => {
  expect(kindOf(value)).toBe(kind)
})

test.each<[unknown, string]>([
  [-0, '-0'],
  [NaN, 'NaN'],
  [false, 'false'],
  ['a\n"b"', '"a\\n\\"b\\""'],
  ['x'.repeat(61), `"${'x'.repeat(60)}…"`],
  [[1], 'an array'],
])('shortValue %#: %o is %s', (value, text) => {
  expect(shortValue(value)).toBe(text)
})

test('a tag is read even of a value whose traps throw', () => {
  expect(tagOf(hostile)).toBe('Object')
  expect(kindOf(hostile)).toBe('an object')
  expect(tagOf(new Map())).toBe('Map')
})

test('quoted keeps a short text whole', () => {
  expect(quoted('x'.repeat(60))).toBe(`"${'x'.repeat(60)}"`)
})
