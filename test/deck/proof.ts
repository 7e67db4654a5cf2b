// Each page of the Deck over a long history: npm run proof:deck [-- --storage sqlite|postgres --dead 1000000 --archived N].
// 1,000,000 dead and 10,000,000 archived jobs on PostgreSQL, 1,000,000 each on SQLite; a page's data answers within
// 300 ms. Takes some minutes and some gigabytes, most of it for making the rows.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createChokaQ } from 'chokaq'
import { postgres } from 'chokaq/postgres'
import { sqlite } from 'chokaq/sqlite'
import { createDatabase } from '../postgres/database.ts'
import { stopSharedServer } from '../postgres/server.ts'
import {
  fillMetrics,
  fillSqlite,
  fillStatements,
  measure,
  postgresDialect,
  type Timing,
  type VolumeSize,
} from './volume.ts'

const limitMs = 300
const rounds = 5
const million = 1_000_000

const { values } = parseArgs({
  options: { storage: { type: 'string' }, dead: { type: 'string' }, archived: { type: 'string' } },
})

function sizeOf(archivedCount: number): VolumeSize {
  return { deadCount: Number(values.dead ?? million), archivedCount: Number(values.archived ?? archivedCount) }
}

function report(name: string, { deadCount, archivedCount }: VolumeSize, timings: readonly Timing[]): void {
  const ms = (value: number): string => `${value.toFixed(0).padStart(7)} ms`
  const lines = timings.map(
    ({ page, medianMs, slowestMs, firstMs }) => `${ms(medianMs)}${ms(slowestMs)}${ms(firstMs)}  ${page.slice(0, 80)}`,
  )
  const late = timings.filter(({ medianMs }) => medianMs > limitMs)
  process.stdout.write(
    [
      `${name}: ${deadCount} dead, ${archivedCount} archived; median, slowest and first of each page`,
      ...lines,
      `${timings.length - late.length} of ${timings.length} pages within ${limitMs} ms`,
      '',
    ].join('\n'),
  )
  if (late.length > 0) process.exitCode = 1
}

async function proveSqlite(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'chokaq-deck-'))
  const path = join(folder, 'jobs.db')
  try {
    const chokaq = createChokaQ({ storage: sqlite(path) })
    await chokaq.ready()
    await chokaq.close()
    const size = sizeOf(million)
    fillSqlite(path, size)
    report('SQLite', size, await measure(sqlite(path), rounds))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function provePostgres(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'chokaq-postgres-'))
  // The server may run as another user than this process.
  chmodSync(folder, 0o755)
  const database = await createDatabase({ folder })
  try {
    const size = sizeOf(10 * million)
    // Nothing here tests the loss of power, and indexes are made faster than they grow.
    for (const sql of fillStatements(postgresDialect, size, Date.now())) {
      await database.query(`SET synchronous_commit = off; ${sql}`)
      process.stderr.write('.')
    }
    const metrics: string[] = []
    fillMetrics(
      (sql) => metrics.push(sql),
      'chokaq.',
      Date.now(),
      (n) => `generate_series(0, ${n - 1}) AS s(i)`,
    )
    for (const sql of metrics) await database.query(sql)
    await database.query('VACUUM ANALYZE chokaq.jobs_archive')
    await database.query('VACUUM ANALYZE chokaq.jobs_dlq')
    await database.query('VACUUM ANALYZE chokaq.metric_buckets')
    process.stderr.write('\n')
    report('PostgreSQL', size, await measure(postgres(database.url), rounds))
  } finally {
    await database.drop()
    await stopSharedServer(folder)
  }
}

if (values.storage !== 'postgres') await proveSqlite()
if (values.storage !== 'sqlite') await provePostgres()
