// The pages over a history that is long enough to tell an index from a scan; the long one is npm run proof:deck.
import { createChokaQ } from 'chokaq'
import { postgres } from 'chokaq/postgres'
import { sqlite } from 'chokaq/sqlite'
import { describe, expect, it } from 'vitest'
import { createDatabase } from '../postgres/database.ts'
import { scratchPath } from '../storage/scratch-sqlite.ts'
import { fillSqlite, fillStatements, measure, postgresDialect, type Timing, type VolumeSize } from './volume.ts'

const size: VolumeSize = { deadCount: 21_000, archivedCount: 21_000 }
/** Far more than any page needs, so that a busy machine passes and a page that reads everything for each row does not. */
const limitMs = 2_000

function slowOf(timings: readonly Timing[]): readonly string[] {
  expect(timings.length).toBeGreaterThan(30)
  return timings.filter(({ medianMs }) => medianMs > limitMs).map(({ page, medianMs }) => `${page} ${medianMs} ms`)
}

describe('each page over 42,000 jobs', () => {
  it('answers on SQLite', async () => {
    const path = scratchPath()
    const chokaq = createChokaQ({ storage: sqlite(path) })
    await chokaq.ready()
    await chokaq.close()
    fillSqlite(path, size)
    expect(slowOf(await measure(sqlite(path), 1))).toEqual([])
  }, 60_000)

  it('answers on PostgreSQL', async () => {
    const database = await createDatabase()
    try {
      for (const sql of fillStatements(postgresDialect, size, Date.now())) await database.query(sql)
      await database.query('VACUUM ANALYZE')
      expect(slowOf(await measure(postgres(database.url), 1))).toEqual([])
    } finally {
      await database.drop()
    }
  }, 60_000)
})
