/** Buckets of metrics: added up into series, rolled up as they age, read for charts. See core/metrics.ts. */
import {
  fixedSeries,
  maxMetricSeries,
  metricAgeing,
  type MetricAgeing,
  metricBucketMs,
  metricLevels,
  metricPoints,
  metricSeriesIds,
  type MetricQuery,
  type MetricSeries,
  type MetricSum,
  metricWindow,
} from '../../../core/metrics.ts'
import type { Session } from '../session.ts'
import type { Transaction } from '../write-transaction.ts'

/** What one sweep takes at most, so that it never holds the write lock for long. The next one goes on. */
const maxRecentBuckets = 60
const maxWindows = 10

const firstRecent = 'SELECT min(at) AS at FROM chokaq_metric_recent'
const takeRecent = 'DELETE FROM chokaq_metric_recent WHERE at = ? RETURNING queue, type, name, label, value'
const selectSeries = 'SELECT id, queue, type FROM chokaq_metric_series'
const insertSeries = `INSERT INTO chokaq_metric_series (id, queue, type)
  SELECT max(?, coalesce(max(id) + 1, 0)), ?, ? FROM chokaq_metric_series RETURNING id`
const addBucket = `INSERT INTO chokaq_metric_buckets (series, step, at, name, label, value) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (series, step, at, name, label) DO UPDATE SET value = value + excluded.value`

interface Pair {
  readonly queue: string
  readonly type: string
}

interface RecentRow extends Pair, Omit<MetricSum, 'atMs'> {}

/**
 * rollUp: what was counted lately -> its series -> wider buckets -> nowhere
 * Every step moves sums and changes none.
 * Who: any worker, with retention.
 */
export function rollUp(tx: Transaction): void {
  addUp(tx.session)
  const hasDeleted = metricAgeing(tx.nowMs).map((ageing) => age(tx.session, ageing))
  if (hasDeleted.some(Boolean)) tx.session.run(forgetSeries)
}

function addUp(session: Session): void {
  const series = new Map<string, number>()
  for (const row of session.all<Pair & { readonly id: number }>(selectSeries)) series.set(pairName(row), row.id)
  for (let round = 0; round < maxRecentBuckets; round += 1) {
    const atMs = session.get<{ readonly at: number | null }>(firstRecent)?.at ?? null
    if (atMs === null) return
    const add = session.statement(addBucket)
    for (const row of session.all<RecentRow>(takeRecent, atMs)) {
      const own = series.get(pairName(row)) ?? newSeries(session, series, row)
      for (const id of [metricSeriesIds.everything, own])
        add.run(id, metricBucketMs, atMs, row.name, row.label, row.value)
    }
  }
}

function pairName({ queue, type }: Pair): string {
  return JSON.stringify([queue, type])
}

function newSeries(session: Session, series: Map<string, number>, pair: Pair): number {
  const { firstPair, others } = metricSeriesIds
  if (series.size >= maxMetricSeries) return others
  const row = session.get<{ readonly id: number }>(insertSeries, firstPair, pair.queue, pair.type)
  const id = row?.id ?? others
  series.set(pairName(pair), id)
  return id
}

// Every bucket has a row of the series of everything, so the oldest one is found in one step.
const firstBucket = 'SELECT min(at) AS at FROM chokaq_metric_buckets WHERE series = 0 AND step = ?'
const inWindow = `FROM chokaq_metric_buckets
  WHERE series IN (SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT id FROM chokaq_metric_series) AND step = ? AND at >= ? AND at < ?`
const widen = `INSERT INTO chokaq_metric_buckets (series, step, at, name, label, value)
  SELECT series, ?, ?, name, label, sum(value) ${inWindow} GROUP BY series, name, label
  ON CONFLICT (series, step, at, name, label) DO UPDATE SET value = value + excluded.value`
const forgetSeries = `DELETE FROM chokaq_metric_series AS s 
  WHERE NOT EXISTS (SELECT 1 FROM chokaq_metric_buckets b WHERE b.series = s.id)`

/** Window by window, the oldest first; whether buckets were deleted for good. */
function age(session: Session, { stepMs, beforeMs, nextStepMs }: MetricAgeing): boolean {
  for (let round = 0; round < maxWindows; round += 1) {
    const first = session.get<{ readonly at: number | null }>(firstBucket, stepMs)?.at ?? null
    if (first === null || first >= beforeMs) return nextStepMs === undefined && round > 0
    const widthMs = nextStepMs ?? stepMs
    const atMs = Math.floor(first / widthMs) * widthMs
    if (nextStepMs !== undefined) session.run(widen, nextStepMs, atMs, stepMs, atMs, atMs + widthMs)
    session.run(`DELETE ${inWindow}`, stepMs, atMs, atMs + widthMs)
  }
  return nextStepMs === undefined
}

const steps = metricLevels.map(({ stepMs }) => stepMs).join(', ')
const isAsked = '(? IS NULL OR queue = ?) AND (? IS NULL OR type = ?)'
// A range of the primary key for each series and width.
const selectSums = `SELECT at / ? * ? AS atMs, name, label, sum(value) AS value FROM (
    SELECT at, name, label, value FROM chokaq_metric_buckets
    WHERE series IN (SELECT ? UNION ALL SELECT id FROM chokaq_metric_series WHERE ? AND ${isAsked})
      AND step IN (${steps}) AND at >= ? AND at < ?
    UNION ALL SELECT at, name, label, value FROM chokaq_metric_recent WHERE at >= ? AND at < ? AND ${isAsked})
  GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`

export function readMetrics({ session, nowMs }: Transaction, query: MetricQuery): MetricSeries {
  const { stepMs, fromMs, toMs } = metricWindow(query, nowMs)
  const { queue = null, type = null } = query
  const asked = [queue, queue, type, type]
  const fixed = fixedSeries(query)
  const range = [fromMs, toMs]
  const values = [stepMs, stepMs, fixed ?? null, fixed === 0 ? 0 : 1, ...asked, ...range, ...range, ...asked]
  return { stepMs, points: metricPoints(session.all<MetricSum>(selectSums, ...values)) }
}
