// K24: a server that is stopped at once, again and again, under three workers and a producer. The checker of the crash
// matrix judges the run: nothing is lost, nothing is doubled, and rows of handlers' transactions are there exactly once.
// `npm run proof:restarts` goes on for minutes.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CrashRun } from '../crash/crash-run.ts'
import { buildPrograms, removePrograms } from '../crash/fixture-programs.ts'
import { createUserTable } from '../crash/fixtures/user-postgres.ts'
import type { UserRow } from '../crash/snapshot.ts'
import type { CrashStorage } from '../crash/storages.ts'
import { until } from '../crash/until.ts'
import { withClient } from './database.ts'
import { type PostgresServer, startServer } from './server.ts'

const restartCount = Number(process.env['CHOKAQ_RESTARTS'] ?? 3)
/** Of uptime before each stop, the shortest and the longest. */
const upMs = restartCount > 3 ? ([5_000, 10_000] as const) : ([2_000, 3_500] as const)
const limitMs = 120_000 + restartCount * 20_000

/** Commits are written when they are answered; what the power would lose is not stopped here. */
const flags = ['-c fsync=off', '-c max_connections=100']

function onServer(server: PostgresServer, folder: string): CrashStorage {
  return {
    name: 'PostgreSQL',
    async create() {
      await withClient(server.url, (client) => client.query(createUserTable))
      return {
        url: server.url,
        folder,
        userRows: () =>
          withClient(
            server.url,
            async (client) => (await client.query<UserRow>('SELECT op, job FROM public.crash_effects')).rows,
          ),
        damage: async () => [],
        tables: async () => [],
        holdLock: () => Promise.reject(new Error('nobody holds a lock here')),
        remove: async () => undefined,
      }
    },
  }
}

test(
  'K24 a server that is stopped at once under load, again and again: every invariant holds, and no worker ends',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'chokaq-restarts-'))
    chmodSync(folder, 0o755)
    const server = await startServer(join(folder, 'cluster'), { flags })
    await buildPrograms()
    const run = await CrashRun.open(onServer(server, folder))
    try {
      await run.chokaq.ready()
      const names = ['worker-a', 'worker-b', 'worker-c']
      const workers = await Promise.all(names.map((name) => run.worker(name)))
      const producer = run.stream('producer-a', 11, 5)
      for (let round = 0; round < restartCount; round += 1) {
        const stopAtMs = performance.now() + upMs[0] + ((upMs[1] - upMs[0]) * (round % 3)) / 2
        await until('the next stop', upMs[1] + 1_000, () => performance.now() >= stopAtMs)
        server.stop('immediate')
        server.start()
        const backAtMs = performance.now()
        const linesBefore = run.lines().filter((line) => line.kind === 'run.end').length
        await until('work after the return of the server', 5_000, () => {
          return run.lines().filter((line) => line.kind === 'run.end').length > linesBefore
        })
        process.stdout.write(
          `restart ${round + 1}: work goes on after ${Math.round(performance.now() - backAtMs)} ms\n`,
        )
      }
      const ended = workers.filter(({ ending }) => ending !== undefined)
      expect(ended.map((worker) => worker.said().slice(-2_000))).toEqual([])
      await run.stop(producer)
      await run.drained(60_000)
      expect(await run.verdict()).toEqual([])
      const jobs = (await run.snapshot()).jobs.length
      process.stdout.write(`${restartCount} immediate stops, ${jobs} jobs\n`)
      expect(jobs).toBeGreaterThan(restartCount * 20)
    } finally {
      await run.close()
      removePrograms()
      server.stop('immediate')
      rmSync(folder, { recursive: true, force: true })
    }
  },
  limitMs,
)
