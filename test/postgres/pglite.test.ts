// Jobs in a transaction of PGlite: a PostgreSQL inside this process, which nobody else can reach. So the tables stand in it,
// and a worker would need a server; here it is the handle that is tested.
import { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { NewJob } from '../../src/core/job.ts'
import { migrations } from '../../src/storage/postgres/migrations.ts'
import { keyedJob, newJob } from '../../src/testing/conformance/new-job.ts'
import { createDatabase } from './database.ts'
import { codeOf, open, runtime } from './scene.ts'

const database = await createDatabase()
const driver = open(database.url)

class RolledBack extends Error {}

describe('enqueue in a transaction of PGlite', () => {
  let lite: PGlite
  beforeAll(async () => {
    lite = await PGlite.create()
    await lite.exec('CREATE SCHEMA chokaq; CREATE TABLE public.app_rows (id uuid PRIMARY KEY)')
    for (const { sql } of migrations) await lite.exec(sql)
    // It compiles itself and makes a cluster first: five seconds of a processor's time.
  }, 120_000)
  afterAll(async () => {
    await lite.close()
    await driver.close()
    await database.drop()
  })

  async function insideOf(id: string): Promise<{ readonly job: NewJob | undefined; readonly hasRow: boolean }> {
    const jobs = await lite.query<NewJob>('SELECT id, payload::text AS payload FROM chokaq.jobs_hot WHERE id = $1', [
      id,
    ])
    const rows = await lite.query('SELECT 1 FROM public.app_rows WHERE id = $1', [id])
    return { job: jobs.rows[0], hasRow: rows.rows.length === 1 }
  }

  it('commits with it, to the letter, and finds duplicates', async () => {
    const key = runtime.newId()
    const [job, same] = [
      keyedJob(runtime, key, { says: `a 'quoted' "text" with $1, ?, \\ and 漢字` }),
      keyedJob(runtime, key, { says: `a 'quoted' "text" with $1, ?, \\ and 漢字` }),
    ]
    await lite.transaction(async (tx) => {
      await tx.query('INSERT INTO public.app_rows VALUES ($1)', [job.id])
      expect(await driver.enqueueIn(tx, [job])).toEqual([{ kind: 'inserted' }])
      expect(await driver.enqueueIn(tx, [same])).toEqual([{ kind: 'active', jobId: job.id, state: 'pending' }])
    })
    const { job: stored, hasRow } = await insideOf(job.id)
    expect([stored?.payload, hasRow]).toEqual([job.payload, true])
  })

  it('rolls back with it', async () => {
    const job = newJob(runtime)
    const call = lite.transaction(async (tx) => {
      await tx.query('INSERT INTO public.app_rows VALUES ($1)', [job.id])
      await driver.enqueueIn(tx, [job])
      throw new RolledBack()
    })
    await expect(call).rejects.toThrow(RolledBack)
    expect(await insideOf(job.id)).toEqual({ job: undefined, hasRow: false })
  })

  it('refuses PGlite itself, outside of a transaction', async () => {
    expect(await codeOf(driver.enqueueIn(lite, [newJob(runtime)]))).toBe('CHOKAQ_NOT_IN_TRANSACTION')
  })
})
