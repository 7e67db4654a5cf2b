import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { durationMs, formatMs, type Duration } from './duration.ts'

describe('durationMs', () => {
  test.each<[Duration, number]>([
    [0, 0],
    [-0, 0],
    [1_500, 1_500],
    [0.4, 0],
    [0.5, 1],
    ['500ms', 500],
    ['30s', 30_000],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['7d', 604_800_000],
    ['1.5h', 5_400_000],
    ['.5s', 500],
    ['0.0004s', 0],
    ['007s', 7_000],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  ])('%s is %i ms', (value, ms) => {
    expect(durationMs(value, 'timeout')).toBe(ms)
  })

  test.each<[unknown, string]>([
    [NaN, 'NaN'],
    [-1, '-1'],
    [-0.3, '-0.3'],
    [Infinity, 'Infinity'],
    [Number.MAX_SAFE_INTEGER + 1, '9007199254740992'],
    ['', '""'],
    ['30', '"30"'],
    ['s', '"s"'],
    ['-1s', '"-1s"'],
    ['+1s', '"+1s"'],
    ['1e3s', '"1e3s"'],
    ['0x10s', '"0x10s"'],
    ['1 s', '"1 s"'],
    [' 1s', '" 1s"'],
    ['1s\n', '"1s\\n"'],
    ['1.s', '"1.s"'],
    ['1S', '"1S"'],
    ['1w', '"1w"'],
    ['1m 30s', '"1m 30s"'],
    ['NaNs', '"NaNs"'],
    ['Infinitys', '"Infinitys"'],
    ['٣s', '"٣s"'],
    [`${'9'.repeat(400)}d`, `"${'9'.repeat(60)}…"`],
    [undefined, 'undefined'],
    [null, 'null'],
    [10n, 'a BigInt'],
    [Symbol('s'), 'a symbol'],
    [{ valueOf: () => 5 }, 'an object'],
    [new Date(5), 'a Date'],
  ])('refuses %o by its name', (value, shown) => {
    expect(() => durationMs(value as Duration, 'timeout')).toThrow(
      expect.objectContaining({ code: 'CHOKAQ_DURATION_INVALID', details: { name: 'timeout', value: shown } }),
    )
  })

  test.each([
    ['999ms', { minMs: 1_000 }, '999ms', 'at least 1s'],
    ['2d', { maxMs: 86_400_000 }, '2d', 'at most 1d'],
    ['2m', { minMs: 1_000, maxMs: 60_000 }, '2m', 'between 1s and 1m'],
    [0.4, { minMs: 1 }, '0ms', 'at least 1ms'],
  ] as const)('%s is outside %o', (value, limits, shown, expected) => {
    expect(() => durationMs(value, 'worker.timeout', limits)).toThrow(
      expect.objectContaining({
        code: 'CHOKAQ_OPTION_INVALID',
        details: { option: 'worker.timeout', value: shown, expected },
      }),
    )
  })

  test('the limits themselves are allowed', () => {
    expect(durationMs('1s', 'x', { minMs: 1_000, maxMs: 1_000 })).toBe(1_000)
  })

  test('gives a whole non-negative number for every number and unit, or refuses', () => {
    const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
    const unit = fc.constantFrom(...(Object.keys(units) as (keyof typeof units)[]))
    fc.assert(
      fc.property(fc.nat({ max: 100_000 }), unit, (count, name) => {
        expect(durationMs(`${count}${name}`, 'x')).toBe(count * units[name])
      }),
    )
  })
})

describe('formatMs', () => {
  test.each([
    [0, '0ms'],
    [-0, '0ms'],
    [0.4, '0ms'],
    [1, '1ms'],
    [1_500, '1s 500ms'],
    [90_000, '1m 30s'],
    [86_400_000, '1d'],
    [90_061_001, '1d 1h 1m 1s 1ms'],
    [-90_000, '-1m 30s'],
    [NaN, 'NaN'],
    [Infinity, 'Infinity'],
  ])('%d ms is %s', (ms, text) => {
    expect(formatMs(ms)).toBe(text)
  })

  test('loses nothing: its parts add up', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (ms) => {
        const sum = formatMs(ms)
          .split(' ')
          .reduce((total, part) => total + durationMs(part as Duration, 'part'), 0)
        expect(sum).toBe(ms)
      }),
    )
  })
})
