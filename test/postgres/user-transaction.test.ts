// Jobs that share the fate of the user's rows: each kind of handle with its real package on the real server. PGlite
// is a database of its own: pglite.test.ts.
import { drizzle } from 'drizzle-orm/node-postgres'
import { sql } from 'drizzle-orm'
import knexOf from 'knex'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgresJs from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromDrizzle, fromKnex } from 'chokaq/postgres'
import type { NewJob } from '../../src/core/job.ts'
import { keyedJob, newJob } from '../../src/testing/conformance/new-job.ts'
import { complete } from '../../src/testing/conformance/actions.ts'
import { createDatabase } from './database.ts'
import { prismaClient } from './fixtures/prisma-client.ts'
import { codeOf, fast, fetchAll, open, register, roundTrip, runtime } from './scene.ts'

const database = await createDatabase()
const driver = open(database.url)
const pool = new pg.Pool({ connectionString: database.url, max: 4 })
const db = drizzle(pool)
const knex = knexOf({ client: 'pg', connection: database.url, pool: { min: 0, max: 2 } })
const kysely = new Kysely<Record<string, never>>({ dialect: new PostgresDialect({ pool }) })
const js = postgresJs(database.url, { max: 2 })
const prisma = prismaClient(database.url)

beforeAll(async () => {
  await driver.ready()
  await database.query('CREATE TABLE app_rows (id uuid PRIMARY KEY)')
})
afterAll(async () => {
  await driver.close()
  await Promise.all([pool.end(), knex.destroy(), js.end(), prisma.$disconnect()])
  await database.drop()
})

class RolledBack extends Error {}

/** A transaction of one kind: writes the user's row with its own means, then calls `work` with its handle. */
interface Kind {
  readonly name: string
  run(id: string, work: (tx: unknown) => Promise<unknown>): Promise<unknown>
  /** A handle of the same package outside of any transaction. */
  readonly root: () => unknown
}

async function inClient<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const result = await work(client)
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

const insertRow = (id: string): string => `INSERT INTO app_rows VALUES ('${id}')`

const kinds: readonly Kind[] = [
  {
    name: 'pg',
    run: (id, work) =>
      inClient(async (client) => {
        await client.query(insertRow(id))
        return work(client)
      }),
    root: () => pool,
  },
  {
    name: 'postgres.js',
    run: (id, work) =>
      js.begin(async (tx) => {
        await tx.unsafe(insertRow(id))
        return work(tx)
      }),
    root: () => js,
  },
  {
    name: 'Kysely',
    run: (id, work) =>
      kysely.transaction().execute(async (tx) => {
        await tx.executeQuery({ sql: insertRow(id), parameters: [], query: { kind: 'RawNode' }, queryId: {} } as never)
        return work(tx)
      }),
    root: () => kysely,
  },
  {
    name: 'drizzle',
    run: (id, work) =>
      db.transaction(async (tx) => {
        await tx.execute(sql.raw(insertRow(id)))
        return work(fromDrizzle(tx, sql))
      }),
    root: () => fromDrizzle(db, sql),
  },
  {
    name: 'knex',
    run: (id, work) =>
      knex.transaction(async (trx) => {
        await trx.raw(insertRow(id))
        return work(fromKnex(trx))
      }),
    root: () => fromKnex(knex),
  },
  {
    name: 'Prisma',
    run: (id, work) =>
      prisma.$transaction(async (tx) => {
        await tx.$executeRawUnsafe(insertRow(id))
        return work(tx)
      }),
    root: () => prisma,
  },
]

async function rowExists(id: string): Promise<boolean> {
  return (await database.query('SELECT 1 FROM app_rows WHERE id = $1', [id])).length === 1
}

const odd = { text: `a 'quoted' "text" with $1, ?, :name, \\ and 漢字` }

describe.each(kinds)('enqueue in a transaction of $name', ({ run, root }) => {
  it('commits with it, to the letter', async () => {
    const job = keyedJob(runtime, runtime.newId(), {
      says: odd,
      tags: ['a?', '$1'],
      due: { kind: 'in', delayMs: 60_000 },
    })
    await run(job.id, (tx) => driver.enqueueIn(tx, [job]))
    expect(await rowExists(job.id)).toBe(true)
    expect(await driver.inspector.get(job.id)).toMatchObject({
      state: 'scheduled',
      payload: job.payload,
      tags: job.tags,
    })
  })

  it('rolls back with it', async () => {
    const job = newJob(runtime)
    const call = run(job.id, async (tx) => {
      await driver.enqueueIn(tx, [job])
      throw new RolledBack()
    })
    await expect(call).rejects.toThrow(RolledBack)
    expect([await rowExists(job.id), await driver.inspector.get(job.id)]).toEqual([false, undefined])
  })

  it('finds duplicates, resends and held keys', async () => {
    const key = runtime.newId()
    const due = { kind: 'in', delayMs: 60_000 } as const
    const [first, same, other, resent] = [
      keyedJob(runtime, key, { due }),
      keyedJob(runtime, key),
      keyedJob(runtime, key, { says: 'something else' }),
      newJob(runtime, { mayExist: true, due }),
    ] as [NewJob, NewJob, NewJob, NewJob]
    await driver.enqueue([first, resent])
    const verdicts = await run(runtime.newId(), (tx) => driver.enqueueIn(tx, [same, other, resent]))
    expect(verdicts).toEqual([
      { kind: 'active', jobId: first.id, state: 'scheduled' },
      { kind: 'key-reused', jobId: first.id, holderPayload: first.payload },
      { kind: 'resent' },
    ])
  })

  it('completes a job with its result, marker and children', async () => {
    await register(driver)
    await driver.enqueue([newJob(runtime)])
    const [job] = await fetchAll(driver)
    if (job === undefined) throw new RolledBack()
    const child = newJob(runtime, { due: { kind: 'in', delayMs: 60_000 } })
    const action = complete({ children: [child], guard: true })
    const verdict = await run(job.lease.jobId, (tx) => driver.completeIn(tx, { lease: job.lease, action }))
    expect(verdict).toEqual({ kind: 'settled', outcome: 'completed', repeated: false })
    expect(await driver.inspector.get(job.lease.jobId)).toMatchObject({
      pillar: 'archive',
      result: '{"charge":"ch_1"}',
    })
    expect(await driver.inspector.get(child.id)).toMatchObject({ state: 'scheduled' })
    const again = await run(runtime.newId(), (tx) => driver.completeIn(tx, { lease: job.lease, action }))
    expect(again).toEqual({ kind: 'settled', outcome: 'completed', repeated: true })
  })

  it('refuses a handle that is in no transaction, and stores nothing', async () => {
    const job = newJob(runtime)
    expect(await codeOf(driver.enqueueIn(root(), [job]))).toBe('CHOKAQ_NOT_IN_TRANSACTION')
    expect(await driver.inspector.get(job.id)).toBeUndefined()
  })
})

describe('handles', () => {
  it.each([undefined, null, 7, 'tx', {}, { query: 'no function' }, []])(
    'that are none are refused: %j',
    async (handle) => {
      expect(await codeOf(driver.enqueueIn(handle, [newJob(runtime)]))).toBe('CHOKAQ_TX_UNSUPPORTED')
    },
  )

  it('of pg outside of a transaction are refused, whether the driver can tell or not', async () => {
    const client = await pool.connect()
    const mute = { query: (text: string, values: unknown[]) => client.query(text, values) }
    for (const handle of [client, mute]) {
      expect(await codeOf(driver.enqueueIn(handle, [newJob(runtime)]))).toBe('CHOKAQ_NOT_IN_TRANSACTION')
    }
    await client.query('BEGIN')
    expect(await driver.enqueueIn(mute, [newJob(runtime)])).toEqual([{ kind: 'inserted' }])
    await client.query('ROLLBACK')
    client.release()
  })

  it('pass errors of their database on unchanged', async () => {
    const bad = newJob(runtime, { priority: 5_000 })
    const call = inClient((client) => driver.enqueueIn(client, [bad]))
    await expect(call).rejects.toMatchObject({ code: '23514', severity: 'ERROR' })
  })

  it('of synchronous transactions do not exist here', () => {
    const unsupported = expect.objectContaining({ code: 'CHOKAQ_TX_UNSUPPORTED' }) as Error
    expect(() => driver.enqueueSync({}, [newJob(runtime)])).toThrow(unsupported)
  })
})

describe("a handler's own transaction", () => {
  const request = (lease: { readonly jobId: string; readonly token: number }, name: string) => ({
    lease,
    ref: { kind: 'checkpoint', keyRef: `job:${lease.jobId}`, generation: 1, name, item: '' } as const,
    id: runtime.newId(),
    workerId: 'w',
    attempt: 1,
    keepMs: 1000,
  })

  it('commits with its checkpoint, and is replayed afterwards', async () => {
    await register(driver)
    await roundTrip(driver)
    await driver.enqueue([newJob(runtime, { type: fast.type })])
    const [job] = await fetchAll(driver)
    if (job === undefined) throw new RolledBack()
    const row = runtime.newId()
    const child = newJob(runtime, { due: { kind: 'in', delayMs: 60_000 } })
    const work = async (tx: unknown): Promise<string> => {
      await (tx as pg.Client).query('INSERT INTO app_rows VALUES ($1)', [row])
      await driver.enqueueIn(tx, [child])
      return '"done"'
    }
    expect(await driver.transaction(request(job.lease, 'mark'), work)).toEqual({ kind: 'ran', result: '"done"' })
    expect([await rowExists(row), (await driver.inspector.get(child.id))?.state]).toEqual([true, 'scheduled'])
    expect(await driver.transaction(request(job.lease, 'mark'), work)).toEqual({ kind: 'replayed', result: '"done"' })
    const stale = { ...job.lease, token: job.lease.token + 1_000 }
    expect(await driver.transaction(request(stale, 'other'), work)).toEqual({ kind: 'lost' })
  })

  it('is rolled back where the lease is lost on the way, or the handler throws', async () => {
    await register(driver)
    await driver.enqueue([newJob(runtime)])
    const [job] = await fetchAll(driver)
    if (job === undefined) throw new RolledBack()
    const [lost, thrown] = [runtime.newId(), runtime.newId()]
    const insert = (tx: unknown, id: string): Promise<unknown> =>
      (tx as pg.Client).query('INSERT INTO app_rows VALUES ($1)', [id])
    const failing = driver.transaction(request(job.lease, 'b'), async (tx) => {
      await insert(tx, thrown)
      throw new RolledBack()
    })
    await expect(failing).rejects.toThrow(RolledBack)
    const verdict = await driver.transaction(request(job.lease, 'a'), async (tx) => {
      await insert(tx, lost)
      await driver.rescue({ deadWorkerIds: ['w'], limit: 10 })
      return null
    })
    expect(verdict).toEqual({ kind: 'lost' })
    expect([await rowExists(lost), await rowExists(thrown)]).toEqual([false, false])
  })
})
