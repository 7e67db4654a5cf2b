/**
 * Buckets of metrics: added up into series, rolled up as they age, read for charts. See core/metrics.ts.
 *
 * One sweeper at a time does it, under a lock that it only tries: what it leaves, the next one takes. So no two of them
 * ever wait for each other's rows, and the number of series is what the limit says.
 */
import {
  fixedSeries,
  maxMetricSeries,
  metricAgeing,
  type MetricAgeing,
  metricBucketMs,
  metricLevels,
  metricPoints,
  type MetricQuery,
  metricSeriesIds,
  type MetricSeries,
  type MetricSum,
  metricWindow,
} from '../../../core/metrics.ts'
import type { Session } from '../session.ts'

const maxRolledUpRows = 20_000
/** What one sweep does at most. The next one goes on. */
const maxRounds = 10
const { everything, others, firstPair } = metricSeriesIds

const tryLock = `SELECT pg_catalog.pg_try_advisory_xact_lock(
  hashtextextended('chokaq metrics', 'chokaq.metric_buckets'::regclass::oid::bigint))::int AS is_mine`

// Sorted, so that totals are always taken in the same order. A reader sums both tables in one snapshot.
const addUp = `
  WITH taken AS (DELETE FROM chokaq.worker_counters w WHERE w.ctid = ANY(ARRAY(
      SELECT o.ctid FROM chokaq.worker_counters o LIMIT ${maxRolledUpRows} FOR UPDATE SKIP LOCKED))
    RETURNING w.at / ${metricBucketMs} * ${metricBucketMs} AS at, w.name, w.queue, w.type, w.label, w.value),
  totals AS (
    INSERT INTO chokaq.stats_totals AS t (name, queue, type, label, value)
    SELECT name, queue, type, label, sum(value) FROM taken WHERE name NOT IN ('duration', 'lag')
    GROUP BY 1, 2, 3, 4 HAVING sum(value) <> 0 ORDER BY 1, 2, 3, 4
    ON CONFLICT (name, queue, type, label) DO UPDATE SET value = t.value + excluded.value),
  fresh AS (
    INSERT INTO chokaq.metric_series (id, queue, type)
    SELECT greatest(${firstPair - 1}, (SELECT max(id) FROM chokaq.metric_series)) + row_number() OVER (ORDER BY p.queue, p.type),
      p.queue, p.type
    FROM (SELECT DISTINCT t.queue, t.type FROM taken t) p
    WHERE NOT EXISTS (SELECT FROM chokaq.metric_series s WHERE s.queue = p.queue AND s.type = p.type)
    ORDER BY p.queue, p.type
    LIMIT greatest(0, ${maxMetricSeries} - (SELECT count(*) FROM chokaq.metric_series))
    RETURNING id, queue, type),
  series AS MATERIALIZED (SELECT id, queue, type FROM chokaq.metric_series UNION ALL SELECT id, queue, type FROM fresh),
  added AS (
    INSERT INTO chokaq.metric_buckets AS b (series, step, at, name, label, value)
    SELECT CASE WHEN grouping(coalesce(s.id, ${others})) = 1 THEN ${everything} ELSE coalesce(s.id, ${others}) END,
      ${metricBucketMs}, t.at, t.name, t.label, sum(t.value)
    FROM taken t LEFT JOIN series s ON s.queue = t.queue AND s.type = t.type
    GROUP BY GROUPING SETS ((t.at, t.name, t.label, coalesce(s.id, ${others})), (t.at, t.name, t.label))
    ORDER BY 1, 3, 4, 5
    ON CONFLICT (series, step, at, name, label) DO UPDATE SET value = b.value + excluded.value)
  SELECT count(*)::int AS count FROM taken`

/**
 * rollUp: what was counted -> totals and series -> wider buckets -> nowhere
 * Every step moves sums and changes none.
 * Who: any worker, with retention, in its transaction.
 */
export async function rollUp(session: Session): Promise<void> {
  const lock = await session.get<{ readonly is_mine: number }>(tryLock)
  if (lock?.is_mine !== 1) return
  for (let round = 0; round < maxRounds; round += 1) {
    const taken = await session.get<{ readonly count: number }>(addUp)
    if ((taken?.count ?? 0) < maxRolledUpRows) break
  }
  const nowMs = await now(session)
  let hasDeleted = false
  for (const ageing of metricAgeing(nowMs)) hasDeleted = (await age(session, ageing)) || hasDeleted
  if (hasDeleted) await session.all(forgetSeries)
}

async function now(session: Session): Promise<number> {
  return (await session.get<{ readonly now: number }>('SELECT chokaq.now_ms() AS now'))?.now ?? 0
}

// Every bucket has a row of the series of everything, so the oldest one is found in one step.
const firstBucket = `SELECT min(at) AS at FROM chokaq.metric_buckets WHERE series = ${everything} AND step = $1`
const inWindow = `b.series = ANY(ARRAY(SELECT id FROM chokaq.metric_series) || ARRAY[${everything}, ${others}])
  AND b.step = $1 AND b.at >= $2 AND b.at < $3`
const deleteBuckets = `DELETE FROM chokaq.metric_buckets b WHERE ${inWindow}`
const widen = `
  WITH taken AS (${deleteBuckets} RETURNING b.series, b.name, b.label, b.value)
  INSERT INTO chokaq.metric_buckets AS w (series, step, at, name, label, value)
  SELECT series, $4::integer, $2, name, label, sum(value) FROM taken GROUP BY 1, 4, 5 ORDER BY 1, 4, 5
  ON CONFLICT (series, step, at, name, label) DO UPDATE SET value = w.value + excluded.value`
const forgetSeries = `DELETE FROM chokaq.metric_series s
  WHERE NOT EXISTS (SELECT FROM chokaq.metric_buckets b WHERE b.series = s.id)`

/** Window by window, the oldest first; whether buckets were deleted for good. */
async function age(session: Session, { stepMs, beforeMs, nextStepMs }: MetricAgeing): Promise<boolean> {
  for (let round = 0; round < maxRounds; round += 1) {
    const first = (await session.get<{ readonly at: number | null }>(firstBucket, stepMs))?.at ?? null
    if (first === null || first >= beforeMs) return nextStepMs === undefined && round > 0
    const widthMs = nextStepMs ?? stepMs
    const atMs = Math.floor(first / widthMs) * widthMs
    if (nextStepMs === undefined) await session.all(deleteBuckets, stepMs, atMs, atMs + widthMs)
    else await session.all(widen, stepMs, atMs, atMs + widthMs, nextStepMs)
  }
  return nextStepMs === undefined
}

const isAsked = (row: string): string =>
  `($4::text IS NULL OR ${row}.queue = $4) AND ($5::text IS NULL OR ${row}.type = $5)`
// A range of the primary key for each series and width.
const selectSums = `
  SELECT at / $1::bigint * $1::bigint AS "atMs", name, label, sum(value)::bigint AS value FROM (
    SELECT b.at, b.name, b.label, b.value FROM chokaq.metric_buckets b
    WHERE b.series = ANY(ARRAY(
        SELECT s.id FROM chokaq.metric_series s WHERE $6::integer IS DISTINCT FROM ${everything} AND ${isAsked('s')}
        UNION ALL SELECT $6::integer))
      AND b.step = ANY('{${metricLevels.map(({ stepMs }) => stepMs).join(',')}}'::integer[])
      AND b.at >= $2::bigint AND b.at < $3::bigint
    UNION ALL
    SELECT w.at, w.name, w.label, w.value FROM chokaq.worker_counters w
    WHERE w.at >= $2::bigint AND w.at < $3::bigint AND ${isAsked('w')}) sums
  GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`

export async function readMetrics(session: Session, query: MetricQuery): Promise<MetricSeries> {
  const { stepMs, fromMs, toMs } = metricWindow(query, await now(session))
  const { queue = null, type = null } = query
  const values = [stepMs, fromMs, toMs, queue, type, fixedSeries(query) ?? null]
  return { stepMs, points: metricPoints(await session.all<MetricSum>(selectSums, ...values)) }
}
