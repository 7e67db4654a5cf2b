import { describe, expect, test } from 'vitest'
import { createSeededRandom } from './seeded-random.ts'

function draw(seed: number, count: number): number[] {
  const random = createSeededRandom(seed)
  return Array.from({ length: count }, () => random.next())
}

describe('createSeededRandom', () => {
  test('the same seed gives the same numbers', () => {
    expect(draw(7, 50)).toEqual(draw(7, 50))
  })

  test('neighbouring seeds have nothing in common', () => {
    const seen = new Set([0, 1, 2, 3, -1].flatMap((seed) => draw(seed, 20)))
    expect(seen.size).toBe(100)
  })

  test('numbers are spread evenly in [0, 1)', () => {
    const numbers = draw(3, 10_000)
    expect(numbers.every((n) => n >= 0 && n < 1)).toBe(true)
    const buckets = Array.from({ length: 10 }, (_, b) => numbers.filter((n) => Math.floor(n * 10) === b).length)
    expect(Math.min(...buckets)).toBeGreaterThan(850)
    expect(Math.max(...buckets)).toBeLessThan(1150)
  })

  test('int reaches both ends and nothing beyond', () => {
    const random = createSeededRandom(5)
    const seen = new Set(Array.from({ length: 500 }, () => random.int(-1, 2)))
    expect([...seen].sort((a, b) => a - b)).toEqual([-1, 0, 1, 2])
  })

  test('shuffle keeps every item and leaves the original alone', () => {
    const items = [1, 2, 3, 4, 5, 6, 7, 8]
    const shuffled = createSeededRandom(11).shuffle(items)
    expect(shuffled).not.toEqual(items)
    expect([...shuffled].sort((a, b) => a - b)).toEqual(items)
    expect(items).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })

  test('pick takes from all items and refuses none', () => {
    const random = createSeededRandom(2)
    expect(new Set(Array.from({ length: 100 }, () => random.pick(['a', 'b', 'c']))).size).toBe(3)
    expect(() => random.pick([])).toThrow(RangeError)
  })

  test('chance follows its probability', () => {
    const random = createSeededRandom(9)
    const hits = Array.from({ length: 2000 }, () => random.chance(0.25)).filter(Boolean).length
    expect(hits).toBeGreaterThan(400)
    expect(hits).toBeLessThan(600)
  })

  test('a fork has a stream of its own', () => {
    const plain = createSeededRandom(4)
    const forking = createSeededRandom(4)
    const fork = forking.fork('other')
    fork.next()
    expect(forking.next()).toBe(plain.next())
    expect(createSeededRandom(4).fork('other').next()).not.toBe(createSeededRandom(4).fork('another').next())
  })
})
