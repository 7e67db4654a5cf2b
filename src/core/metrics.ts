/**
 * Metric buckets: what happened in each ten seconds, per queue and type. Charts read them, so that no chart ever scans
 * history, and a job that is resurrected later rewrites nothing of the past.
 *
 * A bucket holds sums only: counts by counter and label (the names of `stats_totals`), and two histograms, whose label
 * is the place of the bound. The transaction that counts writes them, with the time of the storage's clock: what was
 * rolled back was never counted, and a worker that dies takes nothing with it. The sweep adds them up into series: one
 * for everything, and one for each queue and type, up to `maxMetricSeries`; what is above is summed as `other`. Buckets
 * are rolled up to wider ones as they age, and deleted at last; both move sums and change none.
 *
 * A lag is recorded when an attempt starts, a duration when it ends. A fast start that is given back, because its
 * handler never ran, leaves its lag; an attempt that nobody ended, because its worker died, has no duration.
 */
import type { CounterName, HistogramName } from './counters.ts'

/** The finest bucket. */
export const metricBucketMs = 10_000

/**
 * How wide buckets are, and until which age. Each width is a multiple of the one before it. A bucket is rolled up, and
 * at last deleted, once all of it is older.
 */
export const metricLevels = [
  { stepMs: metricBucketMs, keepMs: 2 * 3_600_000 },
  { stepMs: 60_000, keepMs: 86_400_000 },
  { stepMs: 600_000, keepMs: 7 * 86_400_000 },
  { stepMs: 3_600_000, keepMs: 30 * 86_400_000 },
] as const

/** Pairs of queue and type that have a series of their own. */
export const maxMetricSeries = 100
/** The queue and the type of what came after them. */
export const otherSeries = 'other'
export const maxMetricPoints = 1_000
/** The numbers of series in storages. */
export const metricSeriesIds = { everything: 0, others: 1, firstPair: 2 } as const

/**
 * Upper bounds of the histograms, milliseconds, inclusive; a last count stands for everything above. One list for run
 * time and lag, so that the two can be drawn together.
 */
export const histogramBoundsMs = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 14_400_000,
] as const

const histogramLabels = [...histogramBoundsMs, Infinity].map((_, place) => String(place))

/** The label under which a duration or lag is counted. */
export function histogramLabel(ms: number): string {
  let place = 0
  while (place < histogramBoundsMs.length && ms > (histogramBoundsMs[place] ?? 0)) place += 1
  return histogramLabels[place] ?? ''
}

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
  /**
   * Width of a point; rounded up to a multiple of the widest bucket in the range, and so that at most
   * `maxMetricPoints` points are answered.
   */
  readonly stepMs: number
  readonly queue?: string
  readonly type?: string
}

export interface MetricSeries {
  readonly stepMs: number
  /** Oldest first; a step in which nothing happened is left out. */
  readonly points: readonly MetricPoint[]
}

/** The series besides those of pairs that a query asks for. */
export function fixedSeries({ queue, type }: MetricQuery): number | undefined {
  if (queue === undefined && type === undefined) return metricSeriesIds.everything
  const isOther = (name: string | undefined): boolean => name === undefined || name === otherSeries
  return isOther(queue) && isOther(type) ? metricSeriesIds.others : undefined
}

/** The whole points of a query. */
export interface MetricWindow {
  readonly stepMs: number
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
}

export function metricWindow(query: MetricQuery, nowMs: number): MetricWindow {
  const { fromMs, toMs } = query
  const ageMs = nowMs - fromMs
  const level = metricLevels.find(({ keepMs }) => ageMs <= keepMs) ?? metricLevels[metricLevels.length - 1]
  const widest = level?.stepMs ?? metricBucketMs
  const upTo = (stepMs: number): number => Math.max(1, Math.ceil(stepMs / widest)) * widest
  let stepMs = upTo(query.stepMs)
  const pointCount = (): number => Math.ceil(toMs / stepMs) - Math.floor(fromMs / stepMs)
  if (pointCount() > maxMetricPoints) stepMs = upTo((toMs - fromMs) / (maxMetricPoints - 1))
  return { stepMs, fromMs: Math.floor(fromMs / stepMs) * stepMs, toMs: Math.ceil(toMs / stepMs) * stepMs }
}

/** A sum of one point, as storages read it. */
export interface MetricSum {
  readonly atMs: number
  readonly name: CounterName | HistogramName
  readonly label: string
  readonly value: number
}

/** From sums in the order of their time. */
export function metricPoints(sums: readonly MetricSum[]): readonly MetricPoint[] {
  const points: { atMs: number; counts: MetricCount[]; durationCounts: number[]; lagCounts: number[] }[] = []
  for (const { atMs, name, label, value } of sums) {
    if (value === 0) continue
    let point = points.at(-1)
    if (point?.atMs !== atMs) points.push((point = { atMs, counts: [], durationCounts: [], lagCounts: [] }))
    if (name === 'duration') addTo(point.durationCounts, label, value)
    else if (name === 'lag') addTo(point.lagCounts, label, value)
    else point.counts.push({ name, label, value })
  }
  return points
}

function addTo(counts: number[], label: string, value: number): void {
  if (counts.length === 0) counts.push(...Array<number>(histogramBoundsMs.length + 1).fill(0))
  const place = Number(label)
  counts[place] = (counts[place] ?? 0) + value
}

/** What ages: buckets of `stepMs` that end before `beforeMs` go into the next width, or nowhere. */
export interface MetricAgeing {
  readonly stepMs: number
  readonly beforeMs: number
  /** Undefined: they are deleted. */
  readonly nextStepMs: number | undefined
}

export function metricAgeing(nowMs: number): readonly MetricAgeing[] {
  return metricLevels.map(({ stepMs, keepMs }, n) => {
    const nextStepMs = metricLevels[n + 1]?.stepMs
    const wholeMs = nextStepMs ?? stepMs
    return { stepMs, nextStepMs, beforeMs: Math.floor((nowMs - keepMs) / wholeMs) * wholeMs }
  })
}
