import { describe, expect, test, vi } from 'vitest'
import { FatalError, NotExecuted, RetryAfter, ReviewNeeded } from './control-flow.ts'
import { ChokaQError } from './errors.ts'

const cause = new TypeError('cause')

describe('what they carry', () => {
  test.each([
    [new FatalError('no', { cause }), 'FatalError', 'no'],
    [new NotExecuted('refused', { cause }), 'NotExecuted', 'refused'],
    [new RetryAfter('30s', 'busy', { cause }), 'RetryAfter', 'busy'],
    [new ReviewNeeded('odd', { a: 1 }, { cause }), 'ReviewNeeded', 'odd'],
  ])('%s', (error, name, message) => {
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({ name, message, cause })
    expect(error.stack).toContain(message)
  })

  test('no cause is given where there is none', () => {
    expect('cause' in new FatalError('no')).toBe(false)
    expect(new NotExecuted().message).toBe('')
  })

  test('a review keeps its reason and data', () => {
    expect(new ReviewNeeded('odd', 0)).toMatchObject({ reason: 'odd', data: 0 })
    expect(new ReviewNeeded('odd').data).toBeUndefined()
  })
})

describe('RetryAfter', () => {
  test('keeps a duration as a delay', () => {
    const error = new RetryAfter('1m')
    expect(error).toMatchObject({ delayMs: 60_000, atMs: undefined, reason: undefined, message: 'Retry after 1m' })
    expect(new RetryAfter(0).delayMs).toBe(0)
  })

  test('keeps a Date as a time, past times included', () => {
    const error = new RetryAfter(new Date(0))
    expect(error).toMatchObject({ delayMs: undefined, atMs: 0, message: 'Retry at 1970-01-01T00:00:00.000Z' })
  })

  test.each([NaN, -1, Infinity, '', 'soon', undefined, null, {}, [], new Date(NaN)])(
    'refuses %o when it is made',
    (wait) => {
      expect(() => new RetryAfter(wait as number)).toThrow(expect.objectContaining({ code: 'CHOKAQ_DURATION_INVALID' }))
    },
  )

  test('names an invalid Date', () => {
    expect(() => new RetryAfter(new Date('x'))).toThrow('RetryAfter is an invalid Date')
  })
})

describe('instanceof', () => {
  const classes = { FatalError, NotExecuted, RetryAfter, ReviewNeeded }
  const errors = {
    FatalError: new FatalError('x'),
    NotExecuted: new NotExecuted('x'),
    RetryAfter: new RetryAfter(1),
    ReviewNeeded: new ReviewNeeded('x'),
  }
  const names = Object.keys(classes) as (keyof typeof classes)[]

  test.each(names.flatMap((a) => names.map((b) => [a, b] as const)))('%s instanceof %s', (a, b) => {
    expect(errors[a] instanceof classes[b]).toBe(a === b)
  })

  test('agrees between two copies of the package', async () => {
    vi.resetModules()
    const other = await import('./control-flow.ts')
    expect(other.FatalError).not.toBe(FatalError)
    for (const name of names) expect(errors[name] instanceof other[name]).toBe(true)
    expect(new other.RetryAfter('1s') instanceof RetryAfter).toBe(true)
  })

  test('a subclass is told from its siblings', () => {
    class CardDeclined extends FatalError {}
    class AccountClosed extends FatalError {}
    const declined = new CardDeclined('x')
    expect(declined instanceof FatalError).toBe(true)
    expect(declined instanceof CardDeclined).toBe(true)
    expect(declined instanceof AccountClosed).toBe(false)
    expect(errors.FatalError instanceof CardDeclined).toBe(false)
  })

  test.each(names)('a subclass of %s is told from its class', (name) => {
    const Sub = class extends (classes[name] as unknown as new (wait: number) => Error) {}
    expect(new Sub(1) instanceof classes[name]).toBe(true)
    expect(new Sub(1) instanceof Sub).toBe(true)
    expect(errors[name] instanceof Sub).toBe(false)
  })

  const hostile = new Proxy(
    {},
    {
      get() {
        throw new TypeError('trap')
      },
    },
  )
  test.each([undefined, null, 0, '', 'FatalError', Symbol('x'), new TypeError('x'), hostile, Object.create(null)])(
    'nothing else is one: %#',
    (value: unknown) => {
      for (const name of names) expect(value instanceof classes[name]).toBe(false)
      expect(errors.FatalError instanceof ChokaQError).toBe(false)
    },
  )
})
