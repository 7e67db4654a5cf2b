/** From buckets to what charts draw: every step of the range, rates, and percentiles estimated from histograms. */
import type { ClaimOutcome, CounterName } from '../../core/counters.ts'
import { claimOutcomes } from '../../core/counters.ts'
import {
  histogramBoundsMs,
  metricBucketMs,
  type MetricPoint,
  type MetricQuery,
  type MetricSeries,
} from '../../core/metrics.ts'
import type { MetricSeriesView, Overview, Range, Series } from '../wire.ts'

const minute = 60_000
const hour = 60 * minute

const spans: Readonly<Record<Range, { readonly lengthMs: number; readonly stepMs: number }>> = {
  '15m': { lengthMs: 15 * minute, stepMs: metricBucketMs },
  '1h': { lengthMs: hour, stepMs: 30_000 },
  '6h': { lengthMs: 6 * hour, stepMs: 3 * minute },
  '24h': { lengthMs: 24 * hour, stepMs: 10 * minute },
  '7d': { lengthMs: 7 * 24 * hour, stepMs: hour },
}

export function metricQuery(range: Range, nowMs: number, of: { queue?: string; type?: string }): MetricQuery {
  const { lengthMs, stepMs } = spans[range]
  // The step that runs is part of the range, so it ends with the next one.
  const toMs = (Math.floor(nowMs / stepMs) + 1) * stepMs
  return { fromMs: toMs - lengthMs, toMs, stepMs, ...of }
}

const rates: readonly { readonly label: string; readonly name: CounterName }[] = [
  { label: 'completed', name: 'jobs.completed' },
  { label: 'failed', name: 'jobs.failed' },
  { label: 'dead', name: 'jobs.dlq' },
  { label: 'skipped', name: 'jobs.skipped' },
]
const percentiles = [50, 95, 99] as const

export function seriesView({ fromMs, toMs }: MetricQuery, { stepMs, points }: MetricSeries): MetricSeriesView {
  const first = Math.floor(fromMs / stepMs) * stepMs
  const times = Array.from({ length: Math.max(0, Math.ceil((toMs - first) / stepMs)) }, (_, n) => first + n * stepMs)
  const byTime = new Map(points.map((point) => [point.atMs, point]))
  const at = <T>(read: (point: MetricPoint | undefined) => T): T[] => times.map((time) => read(byTime.get(time)))
  const perSecond = (count: number): number => (count * 1_000) / stepMs
  const quantiles = (counts: (point: MetricPoint) => readonly number[]): readonly Series[] =>
    percentiles.map((percent) => ({
      label: `p${percent}`,
      values: at((point) => (point === undefined ? null : percentile(counts(point), percent / 100))),
    }))
  return {
    stepMs,
    times,
    throughput: rates.map(({ label, name }) => ({ label, values: at((point) => perSecond(countOf(point, name))) })),
    lag: quantiles(({ lagCounts }) => lagCounts),
    duration: quantiles(({ durationCounts }) => durationCounts),
    claims: claimOutcomes.map((label) => ({
      label,
      values: at((point) => countOf(point, 'idempotency.claims', label)),
    })),
  }
}

export function sumsOf(points: readonly MetricPoint[]): Overview['sums'] {
  const sum = (name: CounterName): number => points.reduce((total, point) => total + countOf(point, name), 0)
  return {
    completed: sum('jobs.completed'),
    failed: sum('jobs.failed'),
    dead: sum('jobs.dlq'),
    skipped: sum('jobs.skipped'),
    retried: sum('jobs.retried'),
    rescued: sum('jobs.rescued'),
    deduplicated: sum('jobs.deduplicated'),
  }
}

/** Jobs that left their queue for good. */
export function endedCount(points: readonly MetricPoint[]): number {
  const { completed, dead, skipped } = sumsOf(points)
  return completed + dead + skipped
}

function countOf(point: MetricPoint | undefined, name: CounterName, label?: ClaimOutcome): number {
  let sum = 0
  for (const each of point?.counts ?? []) {
    if (each.name === name && (label === undefined || each.label === label)) sum += each.value
  }
  return sum
}

/** Between the bounds of the bucket it falls into, as if the values lay evenly in there; null where there are none. */
export function percentile(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  const wanted = share * total
  let below = 0
  for (const [index, count] of counts.entries()) {
    if (count > 0 && below + count >= wanted) {
      const lower = index === 0 ? 0 : (histogramBoundsMs[index - 1] ?? 0)
      // Above the last bound nothing is known but that it is more.
      const upper = histogramBoundsMs[index] ?? lower
      return lower + ((wanted - below) / count) * (upper - lower)
    }
    below += count
  }
  return histogramBoundsMs.at(-1) ?? null
}
