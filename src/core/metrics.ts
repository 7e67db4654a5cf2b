/**
 * Metric buckets: what happened in each ten seconds, per queue and type. Charts read them, so that no chart ever scans
 * history, and a job that is resurrected later rewrites nothing of the past.
 *
 * A bucket holds sums only: counts by counter and label (the names of `stats_totals`), and two histograms. Buckets are
 * rolled up to wider ones as they age, and deleted after `metricRetentionMs`.
 */
import type { CounterName } from './counters.ts'

/** The finest bucket. */
export const metricBucketMs = 10_000

/**
 * Upper bounds of the histograms, milliseconds, inclusive; a last count stands for everything above. One list for run
 * time and lag, so that the two can be drawn together.
 */
export const histogramBoundsMs = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 14_400_000,
] as const

export interface MetricCount {
  readonly name: CounterName
  /** Reason or outcome; '' where the counter has none. */
  readonly label: string
  readonly value: number
}

export interface MetricPoint {
  /** Start of the bucket, a multiple of the step. */
  readonly atMs: number
  readonly counts: readonly MetricCount[]
  /** One count per bound of `histogramBoundsMs` and one above them: from start to settle. Empty where nothing ran. */
  readonly durationCounts: readonly number[]
  /** From due to start. */
  readonly lagCounts: readonly number[]
}

export interface MetricQuery {
  readonly fromMs: number
  readonly toMs: number
  /** Width of a point; rounded up to a multiple of `metricBucketMs`, and so that at most 1,000 points are answered. */
  readonly stepMs: number
  readonly queue?: string
  readonly type?: string
}

export interface MetricSeries {
  readonly stepMs: number
  /** Oldest first; a step in which nothing happened is left out. */
  readonly points: readonly MetricPoint[]
}
