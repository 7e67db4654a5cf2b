import fc from 'fast-check'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import {
  appendHistory,
  cleanText,
  describeFailure,
  failureText,
  parseFailure,
  parseHistory,
  serializeFailure,
  type HistoryEntry,
  type StoredFailure,
} from './failure.ts'

const trap = (): never => {
  throw new TypeError('trap')
}
const throwingHandler = Object.fromEntries(
  Object.getOwnPropertyNames(Reflect).map((name) => [name, trap]),
) as ProxyHandler<object>

function errorWith(members: Readonly<Record<string, unknown>>): Error {
  const error = new TypeError('x')
  for (const [key, value] of Object.entries(members)) Object.defineProperty(error, key, { value })
  return error
}

function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

describe('describeFailure', () => {
  test('keeps name, message, code and stack of an error', () => {
    const error = Object.assign(new RangeError('too much'), { code: 'E_RANGE' })
    expect(describeFailure(error)).toEqual({
      name: 'RangeError',
      message: 'too much',
      code: 'E_RANGE',
      stack: cleanText(error.stack ?? '', 8_000),
    })
  })

  test.each<[string, unknown, StoredFailure]>([
    ['undefined', undefined, { name: 'NonError', message: 'undefined', thrown: 'undefined' }],
    ['null', null, { name: 'NonError', message: 'null', thrown: 'null' }],
    ['0', 0, { name: 'NonError', message: '0', thrown: 'number' }],
    ['NaN', NaN, { name: 'NonError', message: 'NaN', thrown: 'number' }],
    ['false', false, { name: 'NonError', message: 'false', thrown: 'boolean' }],
    ['an empty text', '', { name: 'NonError', message: '', thrown: 'string' }],
    ['a text', 'a\0b', { name: 'NonError', message: 'a\ufffdb', thrown: 'string' }],
    ['a BigInt', 5n, { name: 'NonError', message: '5', thrown: 'bigint' }],
    ['a symbol', Symbol('s'), { name: 'NonError', message: 'Symbol(s)', thrown: 'symbol' }],
    ['a function', trap, { name: 'NonError', message: 'a function', thrown: 'function' }],
    ['an array', [1, 'a'], { name: 'NonError', message: '[1,"a"]', thrown: 'array' }],
    ['an object', { status: 500 }, { name: 'NonError', message: '{"status":500}', thrown: 'object' }],
    [
      'an object with a code',
      { code: 'E' },
      { name: 'NonError', message: '{"code":"E"}', code: 'E', thrown: 'object' },
    ],
    ['no prototype', Object.create(null), { name: 'NonError', message: '{}', thrown: 'object' }],
    ['toString throws', { toString: trap }, { name: 'NonError', message: '{"toString":a function}', thrown: 'object' }],
    ['toJSON throws', { toJSON: trap }, { name: 'NonError', message: '{"toJSON":a function}', thrown: 'object' }],
    [
      'a getter throws',
      Object.defineProperty({}, 'a', { enumerable: true, get: trap }),
      { name: 'NonError', message: '{"a":undefined}', thrown: 'object' },
    ],
    [
      'every trap throws',
      new Proxy({}, throwingHandler),
      { name: 'NonError', message: 'an object that cannot be read', thrown: 'object' },
    ],
    ['a revoked proxy', revoked({}), { name: 'NonError', message: 'an object that cannot be read', thrown: 'object' }],
    ['deep', { a: { b: { c: { d: 1 } } } }, { name: 'NonError', message: '{"a":{"b":{"c":…}}}', thrown: 'object' }],
    ['the shape of an error', { name: 'Oops', message: 'm' }, { name: 'Oops', message: 'm' }],
  ])('takes a thrown value: %s', (_, thrown, failure) => {
    expect(describeFailure(thrown)).toEqual(failure)
  })

  test.each<[string, unknown, Partial<StoredFailure>]>([
    ['frozen', Object.freeze(new TypeError('x')), { name: 'TypeError', message: 'x' }],
    ['of another realm', runInNewContext('new TypeError("x")'), { name: 'TypeError', message: 'x' }],
    ['its message is an object', errorWith({ message: { a: 1 } }), { message: '{"a":1}' }],
    ['its message is undefined', errorWith({ message: undefined }), { message: '' }],
    ['its message is null', errorWith({ message: null }), { message: 'null' }],
    ['its name is no text', errorWith({ name: 5 }), { name: 'Error' }],
    ['its name is empty', errorWith({ name: '' }), { name: 'Error' }],
    ['its code is a number', errorWith({ code: 20 }), { code: '20' }],
    ['a DOMException', new DOMException('m', 'AbortError'), { name: 'AbortError', message: 'm', code: '20' }],
  ])('takes an error: %s', (_, thrown, failure) => {
    expect(describeFailure(thrown)).toMatchObject(failure)
  })

  test('leaves out what is not there', () => {
    expect(describeFailure(errorWith({ stack: undefined, code: {} }))).toEqual({ name: 'TypeError', message: 'x' })
  })

  test('takes an error whose members throw when read', () => {
    const error = new TypeError('x')
    // The stack first: it is made when it is first touched, and that reads the other members.
    for (const key of ['stack', 'name', 'message', 'code', 'cause', 'errors']) {
      Object.defineProperty(error, key, { get: trap })
    }
    expect(describeFailure(error)).toEqual({ name: 'Error', message: 'the message cannot be read' })
  })

  test('keeps within its limits, whatever the size', () => {
    const long = 'x'.repeat(1_000_000)
    const failure = describeFailure(errorWith({ name: long, message: long, stack: long, code: long }))
    expect(failure.name.length).toBeLessThanOrEqual(200)
    expect(failure.message.length).toBeLessThanOrEqual(2_000)
    expect(failure.message).toMatch(/x … \(\d+ more characters\)$/)
    expect(failure.stack?.length).toBeLessThanOrEqual(8_000)
    expect(failure.code?.length).toBeLessThanOrEqual(200)
  })

  test('shows only the beginning of a large object', () => {
    const large = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, i) => [`k${i}`, { deep: Array(1_000).fill(long) }]),
    )
    expect(describeFailure(large).message.length).toBeLessThanOrEqual(2_000)
    expect(describeFailure(Array(100).fill(0)).message).toBe(`[${'0,'.repeat(20)}…]`)
  })

  test('never throws, and what it gives survives its storage', () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
        (thrown) => {
          const failure = describeFailure(thrown)
          expect(parseFailure(serializeFailure(failure))).toEqual(failure)
          expect(failureText(failure).length).toBeLessThanOrEqual(500)
        },
      ),
    )
  })
})

const long = 'x'.repeat(10_000)

describe('causes', () => {
  test('are listed nearest first, without their stacks', () => {
    const root = Object.assign(new TypeError('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    const error = new TypeError('fetch failed', { cause: new RangeError('middle', { cause: root }) })
    expect(describeFailure(error).causes).toEqual([
      { name: 'RangeError', message: 'middle' },
      { name: 'TypeError', message: 'connect ECONNREFUSED', code: 'ECONNREFUSED' },
    ])
  })

  test('include the errors of an AggregateError', () => {
    const error = new AggregateError([new TypeError('a'), new RangeError('b', { cause: 'c' })], 'both')
    expect(describeFailure(error).causes?.map(({ message }) => message)).toEqual(['a', 'b', 'c'])
  })

  test('do not include the plain issues some libraries keep in errors', () => {
    expect(describeFailure(errorWith({ errors: [{ path: 'a', message: 'm' }, 5] })).causes).toBeUndefined()
  })

  test.each<[string, unknown, unknown]>([
    ['a text', 'why', { name: 'NonError', message: 'why' }],
    ['0', 0, { name: 'NonError', message: '0' }],
    ['an object', { code: 'E' }, { name: 'NonError', message: '{"code":"E"}', code: 'E' }],
  ])('may be no error: %s', (_, cause, stored) => {
    expect(describeFailure(new TypeError('x', { cause })).causes).toEqual([stored])
  })

  test.each([null, undefined])('are none for %s', (cause) => {
    expect(describeFailure(new TypeError('x', { cause })).causes).toBeUndefined()
  })

  test('end where they go in a circle', () => {
    const a = new TypeError('a')
    const b = new TypeError('b', { cause: a })
    Object.assign(a, { cause: b })
    expect(describeFailure(a).causes).toEqual([{ name: 'TypeError', message: 'b' }])
    const self = new AggregateError([], 'self')
    self.errors.push(self, self)
    expect(describeFailure(self).causes).toBeUndefined()
  })

  test('are at most 10, each cut', () => {
    let error = new TypeError(long)
    for (let i = 0; i < 50; i++) error = new TypeError(long, { cause: error })
    const { causes = [] } = describeFailure(error)
    expect(causes).toHaveLength(10)
    for (const { message } of causes) expect(message.length).toBeLessThanOrEqual(500)
    expect(
      describeFailure(new AggregateError(Array.from({ length: 1_000 }, () => new TypeError('x')))).causes,
    ).toHaveLength(10)
  })

  test('that cannot be read are no obstacle', () => {
    const cause = new Proxy({}, throwingHandler)
    expect(describeFailure(new TypeError('x', { cause })).causes).toEqual([
      { name: 'NonError', message: 'an object that cannot be read' },
    ])
    expect(describeFailure(errorWith({ errors: revoked([]) })).causes).toBeUndefined()
  })
})

test.each<[StoredFailure, string]>([
  [{ name: 'TypeError', message: 'a\n  b' }, 'TypeError: a b'],
  [{ name: 'TypeError', message: '' }, 'TypeError'],
  [{ name: 'E', message: 'm', code: 'C' }, 'E [C]: m'],
  [
    {
      name: 'E',
      message: 'm',
      causes: [
        { name: 'F', message: 'n', code: 'D' },
        { name: 'G', message: 'o' },
      ],
    },
    'E: m (cause: F [D]: n)',
  ],
])('failureText of %o', (failure, line) => {
  expect(failureText(failure)).toBe(line)
})

describe('parseFailure', () => {
  test.each(['', 'plain text', '{', '5', 'null', '[]', '{"name":"x"}', '{"name":1,"message":"m"}'])(
    'keeps a text that is no failure as its message: %j',
    (text) => {
      expect(parseFailure(text)).toEqual({ name: 'UnreadableFailure', message: text })
    },
  )

  test('takes what it knows and bounds it', () => {
    const text = JSON.stringify({
      name: 'E',
      message: long,
      code: 5,
      stack: null,
      thrown: 'number',
      causes: [{ name: 'F', message: 'n', extra: 1 }, 5, null, { name: 'G' }],
      extra: 1,
    })
    expect(parseFailure(text)).toEqual({
      name: 'E',
      message: cleanText(long, 2_000),
      thrown: 'number',
      causes: [{ name: 'F', message: 'n' }],
    })
  })
})

describe('the history', () => {
  const failure: StoredFailure = { name: 'E', message: 'm' }
  const entry = (attempt: number, change: Partial<StoredFailure> = {}): HistoryEntry => ({
    attempt,
    atMs: 1_000 * attempt,
    kind: 'failed',
    failure: { ...failure, ...change },
  })
  const historyOf = (entries: readonly HistoryEntry[]): string =>
    entries.reduce<string | null>((text, each) => appendHistory(text, each), null) ?? ''
  const count = (n: number, change?: Partial<StoredFailure>): readonly HistoryEntry[] =>
    Array.from({ length: n }, (_, i) => entry(i + 1, change))

  test('keeps the last 10 entries, oldest first', () => {
    expect(parseHistory(historyOf(count(3)))).toEqual(count(3))
    expect(parseHistory(historyOf(count(25)))).toEqual(count(25).slice(-10))
  })

  test.each([null, '', 'x', '{', '5', 'null', '{}', '[]', '[1,null,{"attempt":1}]'])('starts anew after %j', (text) => {
    expect(parseHistory(text)).toEqual([])
    expect(parseHistory(appendHistory(text, entry(1)))).toEqual([entry(1)])
  })

  test('keeps the entries of a damaged text that can be read', () => {
    const text = JSON.stringify([entry(1), { ...entry(2), attempt: '2' }, { ...entry(3), failure: null }, entry(4)])
    expect(parseHistory(text).map(({ attempt }) => attempt)).toEqual([1, 4])
  })

  test('gives up the stacks of old entries first', () => {
    const entries = parseHistory(historyOf(count(10, { stack: 's'.repeat(8_000) })))
    expect(entries).toHaveLength(10)
    expect(entries.map(({ failure: { stack } }) => stack !== undefined)).toEqual([
      ...Array<boolean>(7).fill(false),
      true,
      true,
      true,
    ])
  })

  test('then causes, then whole entries', () => {
    const causes = Array.from({ length: 10 }, () => ({ name: 'F', message: 'ü'.repeat(500) }))
    const withCauses = parseHistory(historyOf(count(10, { causes })))
    expect(withCauses).toHaveLength(10)
    expect(withCauses.at(-1)?.failure.causes).toHaveLength(10)
    expect(withCauses[0]?.failure.causes).toBeUndefined()

    const messages = parseHistory(historyOf(count(10, { message: '字'.repeat(2_000) })))
    expect(messages.map(({ attempt }) => attempt)).toEqual([6, 7, 8, 9, 10])
  })

  test('is never longer than 32 kB, whatever the failures are', () => {
    const anyText = (maxLength: number): fc.Arbitrary<string> =>
      fc
        .tuple(fc.string({ unit: 'binary', minLength: 1, maxLength: 5 }), fc.nat({ max: maxLength }))
        .map(([s, n]) => s.repeat(n))
    const cause = fc.record({ name: anyText(100), message: anyText(1_000), code: anyText(100) })
    const anyEntry = fc.record({
      attempt: fc.nat(),
      atMs: fc.nat(),
      kind: anyText(1_000),
      failure: fc.record({
        name: anyText(1_000),
        message: anyText(3_000),
        stack: anyText(9_000),
        causes: fc.array(cause, { maxLength: 12 }),
      }),
    })
    fc.assert(
      fc.property(fc.array(anyEntry, { minLength: 1, maxLength: 15 }), (entries) => {
        const text = historyOf(entries)
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(32_000)
        expect(parseHistory(text).at(-1)?.attempt).toBe(entries.at(-1)?.attempt)
      }),
    )
  }, 60_000)
})
