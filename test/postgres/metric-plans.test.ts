// A chart over a full history of buckets reads ranges of their key, and never a table of jobs.
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { postgres } from 'chokaq/postgres'
import { metricLevels } from '../../src/core/metrics.ts'
import { createNodeRuntime } from '../../src/engine/node-runtime.ts'
import { createDatabase, keepOnFailure } from './database.ts'

const runtime = createNodeRuntime()
const database = await createDatabase()
const plans: string[] = []
let isWatching = false

class ExplainingClient extends pg.Client {
  override query(config: unknown): never {
    const run = async (): Promise<unknown> => {
      const query = config as pg.QueryConfig
      if (isWatching && query.text.includes('metric_buckets')) {
        const { rows } = await super.query({ text: `EXPLAIN ${query.text}`, values: query.values ?? [] })
        plans.push(rows.map((row) => (row as { 'QUERY PLAN': string })['QUERY PLAN']).join('\n'))
      }
      return super.query(query)
    }
    return run() as never
  }
}

const pool = new pg.Pool({ connectionString: database.url, Client: ExplainingClient })
const driver = postgres(pool).open(runtime)
afterAll(async () => {
  await driver.close()
  await pool.end()
  await database.drop()
})

const seriesCount = 30

beforeAll(async () => {
  await driver.ready()
  await database.query(`INSERT INTO chokaq.metric_series (id, queue, type)
    SELECT n + 1, 'queue-' || n % 5, 'type-' || n FROM generate_series(1, ${seriesCount}) n`)
  let olderMs = 0
  for (const { stepMs, keepMs } of metricLevels) {
    await database.query(
      `INSERT INTO chokaq.metric_buckets (at, value, step, series, name, label)
        SELECT (chokaq.now_ms() - $1::bigint - n * $2::bigint) / $2 * $2, 1, $2, s, m, ''
        FROM generate_series(1, $3::bigint) n, generate_series(0, ${seriesCount + 1}) s,
          unnest('{jobs.enqueued,jobs.completed,lag}'::text[]) m`,
      [olderMs, stepMs, Math.floor((keepMs - olderMs) / stepMs) - 1],
    )
    olderMs = keepMs
  }
  await database.query('ANALYZE chokaq.metric_buckets')
}, 60_000)

const hour = 3_600_000

it.each([
  ['an hour', 1, {}],
  ['a day', 24, {}],
  ['thirty days', 720, {}],
  ['a day of one queue', 24, { queue: 'queue-1' }],
  ['an hour of one type', 1, { type: 'type-3' }],
])('%s is read by ranges of the key', async (_, hours, filter) => {
  keepOnFailure(database)
  plans.length = 0
  isWatching = true
  const toMs = runtime.clock.nowMs()
  const series = await driver.inspector.metrics({ fromMs: toMs - hours * hour, toMs, stepMs: 10_000, ...filter })
  isWatching = false
  expect(series.points.length).toBeGreaterThan(20)
  expect(series.points.length).toBeLessThanOrEqual(1_000)
  expect(plans).toHaveLength(1)
  expect(plans[0]).toMatch(/(Index|Bitmap Index) (Only )?Scan (using|on) metric_buckets_pkey/)
  expect(plans[0]).not.toMatch(/Seq Scan on (metric_buckets|jobs_)/)
})
