import { describe, expect, it } from 'vitest'
import { histogramBoundsMs, type MetricPoint } from '../../core/metrics.ts'
import { percentile, sumsOf } from './metrics.ts'

const point = (atMs: number, counts: MetricPoint['counts']): MetricPoint => ({
  atMs,
  counts,
  durationCounts: [],
  lagCounts: [],
})

describe('sums of a range', () => {
  it('add up each counter over all points and labels', () => {
    const sums = sumsOf([
      point(0, [
        { name: 'jobs.completed', label: '', value: 3 },
        { name: 'jobs.deduplicated', label: 'active', value: 2 },
      ]),
      point(10_000, [
        { name: 'jobs.completed', label: '', value: 4 },
        { name: 'jobs.deduplicated', label: 'completed', value: 5 },
        { name: 'jobs.rescued', label: '', value: 1 },
      ]),
    ])
    const none = { failed: 0, dead: 0, skipped: 0, retried: 0 }
    expect(sums).toEqual({ ...none, completed: 7, deduplicated: 7, rescued: 1 })
  })
})

describe('a percentile of a histogram', () => {
  const counts = (places: Readonly<Record<number, number>>): readonly number[] =>
    Array.from({ length: histogramBoundsMs.length + 1 }, (_, place) => places[place] ?? 0)

  it('is nothing where nothing was counted', () => {
    expect(percentile(counts({}), 0.5)).toBeNull()
  })

  it('lies between the bounds of its bucket, in the proportion of what is below it', () => {
    // Place 2 is from 10 to 25 ms.
    expect(percentile(counts({ 2: 10 }), 0.5)).toBe(17.5)
    expect(percentile(counts({ 0: 50, 2: 50 }), 0.5)).toBe(5)
    expect(percentile(counts({ 0: 50, 2: 50 }), 0.99)).toBeCloseTo(24.7)
  })

  it('above the last bound is that bound: more is not known', () => {
    expect(percentile(counts({ [histogramBoundsMs.length]: 1 }), 0.99)).toBe(histogramBoundsMs.at(-1))
  })
})
