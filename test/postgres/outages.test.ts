// K24 and K26 on PostgreSQL: a database that is away, silent, read-only, slow, or hangs up, and a pooler between. No worker
// is declared dead that lives, no process ends, errors come at a bounded pace, and nothing is lost, doubled or invented.
// `npm run proof:outage` is away for the real 40 seconds, with the times of production.
import { rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { postgres, type PostgresOptions } from 'chokaq/postgres'
import type { WorkerOptions } from '../../src/core/config.ts'
import { CrashRun } from '../crash/crash-run.ts'
import { buildPrograms, removePrograms } from '../crash/fixture-programs.ts'
import { leaseTimes, roomyLeaseTimes } from '../crash/fixtures/work.ts'
import { linesOf } from '../crash/history.ts'
import { postgresServer, type CrashStorage } from '../crash/storages.ts'
import { pass, until } from '../crash/until.ts'
import { createDatabase, withClient } from './database.ts'
import { Plant } from './plant.ts'
import { isServerGiven } from './server.ts'
import { transactionPooler } from './transaction-pooler.ts'
import { WireProxy } from './wire-proxy.ts'

/** Scaled down like the times of the crash matrix, unless the proof asks for the real ones. */
const outageMs = Number(process.env['CHOKAQ_OUTAGE_MS'] ?? 2_700)
const isReal = outageMs > 20_000
const realTimes: WorkerOptions = {
  heartbeat: '5s',
  statementDeadline: '5s',
  fenceAfter: '20s',
  deadAfter: '30s',
  sweep: '5s',
  poll: '1s',
  abortGrace: '3s',
}
const heartbeatMs = isReal ? 5_000 : leaseTimes.heartbeat
const backMs = 5_000
/** Who asked just before the return is answered never, and asks again after its own deadline. */
const silenceMs = 6_000
/** The server's keepalive for clients that fell silent, scaled down as well. */
const keepAliveMs = 10_000
/** How long the server waits for a client that fell silent in a transaction: twice the statement deadline, and a little. */
const idleMs = 12_000
const paceMs = 1_000
/** No measure of speed: whoever is not back by then, on however busy a machine, is not on its way. */
const goesOnMs = 15_000
/** With time for a busy machine: what is broken is broken at once, and a fence would be the machine's fault. */
const patience = { ...leaseTimes, statementDeadline: 5_000, fenceAfter: 15_000, deadAfter: 20_000 } as const

async function behindProxy(): Promise<{ readonly storage: CrashStorage; readonly proxy: () => WireProxy }> {
  let proxy: WireProxy | undefined
  const storage: CrashStorage = {
    name: 'PostgreSQL',
    async create() {
      const made = await postgresServer({ openForMs: idleMs }).create()
      const opened = await WireProxy.before(made.url)
      opened.keepAliveMs = keepAliveMs
      proxy = opened
      return {
        ...made,
        url: opened.url,
        remove: () => opened.close().then(() => made.remove()),
      }
    },
  }
  return {
    storage,
    proxy() {
      if (proxy === undefined) throw new Error('there is no run yet')
      return proxy
    },
  }
}

/** Runs of handlers that ended in the last second, looked at a few times a second. */
function paceOf(run: CrashRun): () => number | undefined {
  const samples: { readonly atMs: number; readonly count: number }[] = []
  return () => {
    const atMs = performance.now()
    const newest = samples.at(-1)
    if (newest !== undefined && atMs - newest.atMs < paceMs / 5) return undefined
    const count = linesOf(run.lines(), 'run.end').length
    samples.push({ atMs, count })
    const first = samples.find((sample) => atMs - sample.atMs <= paceMs * 1.2)
    if (first === undefined || atMs - first.atMs < paceMs * 0.8) return undefined
    return ((count - first.count) * 1_000) / (atMs - first.atMs)
  }
}

describe(`a database that is away for ${outageMs} ms`, () => {
  it.each([
    { how: 'refuses connections', isSilent: false, withinMs: backMs },
    { how: 'says nothing', isSilent: true, withinMs: backMs + silenceMs },
  ])(
    'K24 and $how: nobody is killed falsely, work is back at its pace in time, and errors are bounded',
    async ({ how, isSilent, withinMs }) => {
      await buildPrograms()
      const { storage, proxy } = await behindProxy()
      const run = await CrashRun.open(storage)
      try {
        await run.chokaq.ready()
        const options = isReal ? realTimes : {}
        const names = ['worker-a', 'worker-b']
        const workers = await Promise.all(names.map((name) => run.worker(name, { options })))
        const producer = run.stream('producer-a', 11, 5)
        const pace = paceOf(run)
        await pass(2_000)
        const before = await until('a pace', 10_000, () => pace())
        const troubleBefore = linesOf(run.lines(), 'trouble').length

        if (isSilent) proxy().isSilent = true
        else {
          proxy().isDown = true
          proxy().dropAll()
        }
        await pass(outageMs)
        proxy().disarm()
        const backAtMs = performance.now()
        const troubleCount = linesOf(run.lines(), 'trouble').length - troubleBefore
        const fresh = paceOf(run)
        const after = await until('the pace of before', withinMs + paceMs, () => {
          const now = fresh()
          return now !== undefined && now >= 0.7 * before ? now : undefined
        })
        const tookMs = performance.now() - backAtMs
        process.stdout.write(
          `a database that ${how} for ${outageMs} ms: ${Math.round(before)} jobs/s before, ${Math.round(after)} ` +
            `jobs/s ${Math.round(tookMs)} ms after its return, ${troubleCount} error events of two workers\n`,
        )

        expect(workers.filter(({ ending }) => ending !== undefined).map((worker) => worker.said())).toEqual([])
        const fenced = linesOf(run.lines(), 'fenced')
        expect(fenced.filter(({ why }) => why === 'declared-dead')).toEqual([])
        const gaveUp = new Set(fenced.map(({ workerId }) => workerId))
        expect(linesOf(run.lines(), 'rescued').filter(({ workerId }) => !gaveUp.has(workerId))).toEqual([])
        // Each worker: its beats and sweeps, a fetch that waits longer each time, and each outcome in hand once a second
        // at last.
        const outcomes = 10 * (6 + outageMs / 1_000)
        expect(troubleCount).toBeLessThan(names.length * ((3 * outageMs) / heartbeatMs + outcomes + 20))
        await run.stop(producer)
        await run.drained(60_000)
        expect(await run.verdict()).toEqual([])
      } finally {
        await run.close()
        removePrograms()
      }
    },
    180_000 + outageMs,
  )
})

const database = await createDatabase()
const plants: Plant[] = []
afterEach(async () => {
  await Promise.all(plants.splice(0).map((plant) => plant.close()))
})
afterAll(() => database.drop())

async function opened(times: WorkerOptions, options: PostgresOptions = {}): Promise<Plant> {
  const plant = await Plant.open(database, postgres(database.url, options), times)
  plants.push(plant)
  return plant
}

async function backendsOf(name: string): Promise<readonly number[]> {
  const rows = await database.query<{ readonly pid: number }>(
    `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE $1`,
    [name],
  )
  return rows.map(({ pid }) => pid)
}

/** Who was told to end. */
async function terminate(name: string): Promise<readonly number[]> {
  const pids = await backendsOf(name)
  for (const pid of pids) await database.query('SELECT pg_terminate_backend($1)', [pid])
  return pids
}

describe('a database that becomes read-only', () => {
  const change = (to: 'on' | 'off') =>
    withClient(database.url, (client) =>
      client.query(
        `BEGIN READ WRITE; ALTER DATABASE ${database.name} SET default_transaction_read_only = ${to}; COMMIT`,
      ),
    )

  it('K26 is waited out: a clear error, nothing invented, and the work goes on without a restart', async (context) => {
    context.onTestFinished(async () => void (await change('off')))
    const plant = await opened(leaseTimes)
    await plant.flow(20)
    await change('on')
    await terminate('chokaq %')
    const startMs = performance.now()
    const refusal: unknown = await plant.orderOnce().catch((error: unknown) => error)
    expect(refusal).toMatchObject({
      code: 'CHOKAQ_ENQUEUE_UNKNOWN',
      cause: { code: 'CHOKAQ_STORAGE_FAILED', message: expect.stringContaining('read-only transaction') as string },
    })
    await pass(1_500)
    const lastedMs = performance.now() - startMs
    const troubles = plant.named('storage.failed', 'worker.beat_failed')
    expect(troubles.some(({ failure }) => failure.message.includes('read-only transaction'))).toBe(true)
    expect(troubles.length).toBeLessThan((4 * lastedMs) / leaseTimes.heartbeat + 30)
    const [stored] = await database.query<{ readonly n: number }>(
      `SELECT count(*)::int AS n FROM (SELECT id FROM chokaq.jobs_hot UNION ALL SELECT id FROM chokaq.jobs_archive) j`,
    )
    expect(stored).toEqual({ n: 20 })
    await change('off')
    const backAtMs = performance.now()
    await plant.flow(20)
    expect(performance.now() - backAtMs).toBeLessThan(goesOnMs)
    expect(await plant.problems()).toEqual([])
    expect(plant.worker.state).toBe('running')
  })
})

/** Puts a device that is always full in the place of a table's file; a truncation gives the table a file of its own again. */
async function fillUp(table: string): Promise<void> {
  await database.query(`TRUNCATE ${table}`)
  const [at] = await database.query<{ readonly folder: string; readonly path: string }>(
    `SELECT current_setting('data_directory') AS folder, pg_relation_filepath('${table}') AS path`,
  )
  const file = join(at?.folder ?? '', at?.path ?? '')
  rmSync(file)
  symlinkSync('/dev/full', file)
}

describe('a table that cannot grow', () => {
  // A server that is not of this run keeps its files where they are not ours.
  it.skipIf(isServerGiven())('K26 outcomes wait for room, and each job is done once', async () => {
    const plant = await opened(roomyLeaseTimes)
    await plant.flow(5)
    await fillUp('chokaq.jobs_archive')
    const startMs = performance.now()
    await Promise.all(Array.from({ length: 5 }, () => plant.order()))
    const refusals = () => plant.named('storage.failed').filter(({ during }) => during === 'settle')
    // A busy machine may add outcomes that are merely late.
    const withoutRoom = () => refusals().find(({ failure }) => failure.code === 'CHOKAQ_STORAGE_FULL')
    await until('outcomes that find no room', 10_000, () => withoutRoom() !== undefined)
    expect(withoutRoom()?.failure).toMatchObject({
      message: expect.stringMatching(/No space left on device.*free space/) as string,
    })
    await pass(2 * roomyLeaseTimes.fenceAfter)
    expect(refusals().length).toBeLessThan((performance.now() - startMs) / 1_000 + 20)
    await database.query('TRUNCATE chokaq.jobs_archive')
    const backAtMs = performance.now()
    await plant.settled()
    expect(performance.now() - backAtMs).toBeLessThan(goesOnMs)
    await plant.flow(5)
    expect(await plant.problems()).toEqual([])
    expect(plant.named('worker.fenced', 'job.rescued')).toEqual([])
  })
})

describe('connections of a worker that the server ends', () => {
  it.each(['main', 'settle', 'beat', 'handler', 'listen'])(
    'K24 one after the other, of the lane %s: no lease is lost, and every job is done once',
    async (lane) => {
      const plant = await opened(patience)
      await plant.flow(5)
      const isBack = (known: readonly number[]) =>
        until(`the lane ${lane} to be there`, goesOnMs, async () =>
          (await backendsOf(`chokaq ${lane}`)).some((pid) => !known.includes(pid)),
        )
      await isBack([])
      let endedCount = 0
      for (let round = 0; round < 5; round += 1) {
        const orders = Promise.all(Array.from({ length: 20 }, () => plant.order()))
        const ended = await terminate(`chokaq ${lane}`)
        endedCount += ended.length
        await orders
        // Where these were done before the end, the lane is asked for by one more.
        await plant.flow(1)
        await isBack(ended)
      }
      expect(endedCount).toBeGreaterThanOrEqual(5)
      expect(await plant.problems()).toEqual([])
      expect(plant.named('worker.fenced', 'worker.declared_dead')).toEqual([])
    },
    120_000,
  )
})

describe('a statement that takes too long', () => {
  it('K26 is ended by the server, its connection stays, and the work goes on', async () => {
    const plant = await opened(patience, { statementDeadlineMs: 500, lockTimeoutMs: 5_000, listen: false })
    await plant.flow(10)
    const pids = new Set(await backendsOf('chokaq main'))
    await withClient(database.url, async (client) => {
      await client.query('BEGIN; LOCK TABLE chokaq.jobs_hot IN ACCESS EXCLUSIVE MODE')
      const order = plant.order()
      await until('a statement to be ended', goesOnMs, () =>
        plant.named('storage.failed').some(({ failure }) => failure.message.includes('statement timeout')),
      )
      await client.query('COMMIT')
      await order
    })
    await plant.flow(20)
    expect(await plant.problems()).toEqual([])
    expect(plant.named('worker.fenced')).toEqual([])
    expect((await backendsOf('chokaq main')).some((pid) => pids.has(pid))).toBe(true)
  })
})

/** What a session may have been left with by whoever had it before. */
const sessionState = `SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock,
  current_setting('idle_in_transaction_session_timeout') AS idle, current_setting('search_path') AS path,
  current_setting('jit') AS jit, current_setting('random_page_cost') AS page, current_setting('synchronous_commit') AS flush,
  (SELECT count(*)::int FROM pg_prepared_statements) AS prepared, (SELECT count(*)::int FROM pg_listening_channels()) AS heard,
  (SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks`

describe('a pooler that gives each transaction another session', () => {
  it('works with all of it, by polling alone, and leaves nothing in a session', async () => {
    const pooler = await transactionPooler(database.url, 5)
    try {
      const storage = postgres(pooler.pool, { pooler: 'transaction' })
      expect(storage.capabilities.supportsListen).toBe(false)
      const plant = await Plant.open(database, storage, patience)
      await plant.flow(60)
      expect(await plant.problems()).toEqual([])
      expect(plant.named('worker.fenced', 'storage.failed', 'worker.beat_failed')).toEqual([])
      await plant.close()
      expect(Math.min(...pooler.counts)).toBeGreaterThan(5)
      const untouched = await withClient(
        database.url,
        async (client) => (await client.query(sessionState)).rows as unknown[],
      )
      for (const session of pooler.sessions) expect((await session.query(sessionState)).rows).toEqual(untouched)
    } finally {
      await pooler.close()
    }
  })
})
