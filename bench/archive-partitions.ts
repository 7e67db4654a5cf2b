/**
 * The archive as one plain table with batched deletes, beside daily partitions: what each costs where jobs end, where old
 * ones go, and where one is looked for. Decision 0008 has the figures.
 *
 *   node --conditions=chokaq-source --import jiti/register bench/archive-partitions.ts [--rows 1500000] [--rounds 3]
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { postgres } from 'chokaq/postgres'
import { createNodeRuntime } from '../src/engine/node-runtime.ts'
import { startServer } from '../test/postgres/server.ts'
import { median, nowMs, percentile } from './measure.ts'

const dayMs = 86_400_000
const days = 15
const batchSize = 500
const pruneLimit = 1_000
const lookupCount = 2_000

const { values } = parseArgs({
  options: { rows: { type: 'string', default: '1500000' }, rounds: { type: 'string', default: '3' } },
})
const rowCount = Number(values.rows)
const perDay = Math.floor(rowCount / days)

type Measured = Readonly<Record<string, number>>

interface Kind {
  readonly name: string
  readonly create: readonly string[]
  /** Takes the oldest day out; gives the number of rows that went. */
  readonly prune: (client: pg.Client, startMs: number) => Promise<number>
}

const dayName = (day: number): string => `bench.day_${day}`

/** From day 0, the oldest, to the day after today, made ahead. */
function partitions(startMs: number): readonly string[] {
  return Array.from({ length: days + 2 }, (_, day) => {
    const from = startMs + day * dayMs
    return `CREATE TABLE ${dayName(day)} PARTITION OF bench.archive FOR VALUES FROM (${from}) TO (${from + dayMs})`
  })
}

const indexes = [
  'CREATE INDEX ON bench.archive (created_at, id)',
  'CREATE INDEX ON bench.archive (queue, finished_at) WHERE expires_at IS NULL',
  'CREATE INDEX ON bench.archive (expires_at) WHERE expires_at IS NOT NULL',
]

async function deleteInBatches(client: pg.Client, startMs: number): Promise<number> {
  let count = 0
  for (;;) {
    const { rowCount: deleted } = await client.query(
      `DELETE FROM bench.archive t WHERE t.id = ANY(ARRAY(SELECT o.id FROM bench.archive o WHERE o.expires_at IS NULL
        AND o.queue = 'default' AND o.finished_at < $1 ORDER BY o.finished_at LIMIT ${pruneLimit} FOR UPDATE SKIP LOCKED))`,
      [startMs + dayMs],
    )
    count += deleted ?? 0
    if ((deleted ?? 0) < pruneLimit) return count
  }
}

function kindsAt(startMs: number): readonly Kind[] {
  const parent = `CREATE TABLE bench.archive (LIKE chokaq.jobs_archive INCLUDING DEFAULTS INCLUDING CONSTRAINTS)
    PARTITION BY RANGE (finished_at)`
  const key = 'ALTER TABLE bench.archive ADD PRIMARY KEY (id, finished_at)'
  const countDay = `SELECT count(*)::int AS n FROM ${dayName(0)}`
  const partitioned = (name: string, how: string, extra: readonly string[]): Kind => ({
    name,
    create: [parent, key, ...indexes, ...partitions(startMs), ...extra],
    async prune(client) {
      const [{ n }] = (await client.query(countDay)).rows as [{ n: number }]
      await client.query(`ALTER TABLE bench.archive DETACH PARTITION ${dayName(0)}${how}`)
      await client.query(`DROP TABLE ${dayName(0)}`)
      return n
    },
  })
  return [
    {
      name: 'plain table, batched deletes',
      create: [
        `CREATE TABLE bench.archive (LIKE chokaq.jobs_archive INCLUDING ALL)
          WITH (autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_scale_factor = 0.05)`,
      ],
      prune: deleteInBatches,
    },
    partitioned('days, DETACH CONCURRENTLY, no default', ' CONCURRENTLY', []),
    partitioned('days, DETACH, default partition', '', ['CREATE TABLE bench.rest PARTITION OF bench.archive DEFAULT']),
  ]
}

const columns = `id, outcome, type, queue, priority, run_at, token, generation, attempt, failure_count, crash_count,
  fetch_crash_count, revision, key_computed, created_at, finished_at, payload, result`
const rowsFrom = (at: string, series: string): string =>
  `INSERT INTO bench.archive (${columns}) SELECT gen_random_uuid(), 'completed', 'mail.send.v1', 'default', 0, ${at}, n, 1,
    1, 0, 0, 0, 0, false, ${at}, ${at}, '{"invoiceId":"inv_000000","amountCents":1299,"email":"a@example.com"}', '{"ok":true}'
    FROM ${series} n`

/** Ends jobs in batches, as a settle does, until told to stop. */
async function settleUntil(client: pg.Client, done: () => boolean): Promise<{ rate: number; worstMs: number }> {
  const startedMs = nowMs()
  const times: number[] = []
  while (!done()) {
    const batchMs = nowMs()
    await client.query(rowsFrom(String(Date.now()), `generate_series(1, ${batchSize})`))
    times.push(nowMs() - batchMs)
  }
  return { rate: (times.length * batchSize) / ((nowMs() - startedMs) / 1_000), worstMs: Math.max(...times) }
}

async function lookUp(client: pg.Client): Promise<number> {
  const { rows } = await client.query(`SELECT id FROM bench.archive TABLESAMPLE SYSTEM (0.5) LIMIT ${lookupCount}`)
  const times: number[] = []
  for (const { id } of rows as { id: string }[]) {
    const startedMs = nowMs()
    await client.query({ name: 'by-id', text: 'SELECT payload FROM bench.archive WHERE id = $1', values: [id] })
    times.push(nowMs() - startedMs)
  }
  return percentile(times, 0.5)
}

async function timeOf(client: pg.Client, text: string, times = 50): Promise<number> {
  const measured: number[] = []
  for (let n = 0; n < times; n += 1) {
    const startedMs = nowMs()
    await client.query(text)
    measured.push(nowMs() - startedMs)
  }
  return percentile(measured, 0.5)
}

const sizes = `SELECT sum(pg_table_size(c.oid))::float8 / 1e6 AS heap, sum(pg_indexes_size(c.oid))::float8 / 1e6 AS indexes,
    sum(pg_stat_get_dead_tuples(c.oid))::float8 AS dead
  FROM pg_class c WHERE c.relnamespace = 'bench'::regnamespace AND c.relkind = 'r'`

async function measure(kind: Kind, connect: () => Promise<pg.Client>, startMs: number): Promise<Measured> {
  const [user, pruner] = [await connect(), await connect()]
  try {
    await user.query('DROP SCHEMA IF EXISTS bench CASCADE; CREATE SCHEMA bench')
    for (const text of kind.create) await user.query(text)
    for (let day = 0; day < days; day += 1) {
      const at = `${startMs} + ${day}::bigint * ${dayMs} + (n * ${dayMs / perDay})::bigint`
      await user.query(rowsFrom(at, `generate_series(0, ${perDay - 1})`))
    }
    await user.query('VACUUM ANALYZE bench.archive')
    await user.query('CHECKPOINT')
    const endMs = nowMs() + 5_000
    const alone = await settleUntil(user, () => nowMs() > endMs)
    const idMs = await lookUp(user)
    const pageMs = await timeOf(user, 'SELECT id FROM bench.archive ORDER BY created_at DESC, id DESC LIMIT 50')
    let isPruned = false
    const prunedMs = nowMs()
    const pruning = kind.prune(pruner, startMs).then((count) => {
      isPruned = true
      return { count, ms: nowMs() - prunedMs }
    })
    const beside = await settleUntil(user, () => isPruned)
    const { count, ms } = await pruning
    await user.query('SELECT pg_stat_force_next_flush()')
    const [after] = (await user.query(sizes)).rows as [{ heap: number; indexes: number; dead: number }]
    return {
      'settle rows/s': alone.rate,
      'settle rows/s beside the prune': beside.rate,
      'worst batch beside it, ms': beside.worstMs,
      'pruned rows/s': count / (ms / 1_000),
      'one day gone after, ms': ms,
      'by id, ms': idMs,
      'newest 50, ms': pageMs,
      'heap, MB': after.heap,
      'indexes, MB': after.indexes,
      'dead rows after': after.dead,
    }
  } finally {
    await Promise.all([user.end(), pruner.end()])
  }
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'chokaq-archive-'))
  chmodSync(folder, 0o755)
  const server = await startServer(join(folder, 'cluster'), {
    flags: ['-c shared_buffers=512MB', '-c max_wal_size=4GB'],
  })
  try {
    const driver = postgres(server.url).open(createNodeRuntime())
    await driver.ready()
    await driver.close()
    const connect = async (): Promise<pg.Client> => {
      const client = new pg.Client(server.url)
      await client.connect()
      return client
    }
    const startMs = Math.floor(Date.now() / dayMs - days + 1) * dayMs
    const kinds = kindsAt(startMs)
    const runs: Measured[][] = kinds.map(() => [])
    for (let round = 0; round < Number(values.rounds); round += 1) {
      for (const [n, kind] of kinds.entries()) runs[n]?.push(await measure(kind, connect, startMs))
    }
    console.log(`${rowCount} rows of ${days} days, medians of ${values.rounds} rounds\n`)
    for (const [n, kind] of kinds.entries()) {
      console.log(kind.name)
      for (const name of Object.keys(runs[n]?.[0] ?? {})) {
        const value = median(runs[n]?.map((run) => run[name] ?? Number.NaN) ?? [])
        console.log(`  ${name.padEnd(34)} ${value.toLocaleString('en', { maximumFractionDigits: 2 })}`)
      }
    }
  } finally {
    server.stop('fast')
    rmSync(folder, { recursive: true, force: true })
  }
}

await main()
