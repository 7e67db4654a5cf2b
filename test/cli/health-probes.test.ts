// The probes of a real worker process while its storage goes away, while its tables do, and while a queue lags.
import Database from 'better-sqlite3'
import { createChokaQ, type ChokaQ } from 'chokaq'
import { postgres } from 'chokaq/postgres'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { createDatabase, withClient } from '../postgres/database.ts'
import { by, charge, openScene, resize, userFile, type Scene } from './scene.ts'
import { spawnCli, type SpawnedCli } from './spawned-cli.ts'

const file = userFile(`
const resize = defineJob({ type: 'image.resize.v1', payload: z.object({ id: z.string() }) })
export const handlers = [defineHandler(resize, { sideEffects: 'none', async run() {} })]
export const health = { degradedLag: '300ms', unhealthyLag: '1s', timeout: '2s' }
`)
const deadlineMs = 90_000

interface Place {
  readonly client: ChokaQ
  readonly location: string
  query(sql: string): Promise<void>
  readonly hideTables: string
  readonly showTables: string
}

let scene: Scene
afterEach(() => scene.close())

async function sqlitePlace(): Promise<Place> {
  scene = await openScene()
  return {
    client: scene.chokaq,
    location: scene.db,
    async query(sql) {
      const db = new Database(scene.db, { timeout: 10_000 })
      db.exec(sql)
      db.close()
    },
    hideTables: 'ALTER TABLE chokaq_queues RENAME TO hidden_queues; ALTER TABLE chokaq_jobs_hot RENAME TO hidden_hot',
    showTables: 'ALTER TABLE hidden_queues RENAME TO chokaq_queues; ALTER TABLE hidden_hot RENAME TO chokaq_jobs_hot',
  }
}

async function postgresPlace(): Promise<Place & { readonly server: string; readonly name: string }> {
  scene = await openScene()
  const database = await createDatabase()
  const client = createChokaQ({ storage: postgres(database.url) })
  onTestFinished(async () => {
    await client.close()
    await database.drop()
  })
  const server = new URL(database.url)
  server.pathname = '/postgres'
  return {
    client,
    location: database.url,
    name: database.name,
    server: server.href,
    query: async (sql) => void (await database.query(sql)),
    hideTables: 'ALTER SCHEMA chokaq RENAME TO hidden',
    showTables: 'ALTER SCHEMA hidden RENAME TO chokaq',
  }
}

interface Probes {
  readonly worker: SpawnedCli
  /** Status, state and the checks that are not well. */
  readonly ask: (probe: 'live' | 'ready') => Promise<string>
}

async function work(location: string): Promise<Probes> {
  scene.write('work.ts', file)
  const worker = spawnCli(['work', 'work.ts', '--db', location, '--http', '127.0.0.1:0'], scene.cwd, deadlineMs)
  onTestFinished(() => void worker.child.kill('SIGKILL'))
  const url = /url=(\S+)/.exec(await worker.line(/cli\.listening/))?.[1] ?? ''
  await worker.line(/worker\.started/)
  const ask = async (probe: 'live' | 'ready'): Promise<string> => {
    const response = await fetch(`${url}/health/${probe}`)
    const { state, reasons } = (await response.json()) as { state: string; reasons: { check: string }[] }
    return [response.status, state, ...new Set(reasons.map(({ check }) => check))].join(' ')
  }
  return { worker, ask }
}

const within = { timeout: 40_000, interval: 300 }
const places = [
  ['SQLite', sqlitePlace],
  ['PostgreSQL', postgresPlace],
] as const

describe.skipIf(process.platform === 'win32').each(places)('the probes of a process on %s', (_, open) => {
  it('tell that the tables are gone, and that they are back', { timeout: deadlineMs }, async () => {
    const place = await open()
    const { worker, ask } = await work(place.location)
    await expect.poll(() => ask('ready'), within).toBe('200 healthy')
    await place.query(place.hideTables)
    await expect.poll(() => ask('ready'), within).toMatch(/^503 unhealthy.* schema/)
    expect(await ask('live')).toMatch(/^200/)
    await place.query(place.showTables)
    await expect.poll(() => ask('ready'), within).toBe('200 healthy')
    worker.child.kill('SIGTERM')
    expect(await worker.done).toBe(0)
  })

  it('follow the lag of a queue, by the limits of its file', { timeout: deadlineMs }, async () => {
    const place = await open()
    const { ask } = await work(place.location)
    const { id } = await place.client.enqueue(charge, { order: 'a', cents: 1 })
    await expect.poll(() => ask('ready'), within).toBe('503 unhealthy queue-lag')
    expect(await ask('live')).toBe('200 healthy')
    await place.client.jobs.cancel(id, by)
    await expect.poll(() => ask('ready'), within).toBe('200 healthy')
  })
})

describe.skipIf(process.platform === 'win32')('the probes of a process', () => {
  it('tell that its server refuses it, and that it is back', { timeout: deadlineMs }, async () => {
    const place = await postgresPlace()
    const { worker, ask } = await work(place.location)
    await expect.poll(() => ask('ready'), within).toBe('200 healthy')
    await withClient(place.server, async (client) => {
      await client.query(`ALTER DATABASE ${place.name} WITH ALLOW_CONNECTIONS false`)
      await client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [place.name])
      await expect.poll(() => ask('ready'), within).toMatch(/^503 unhealthy.* storage/)
      expect(await ask('live')).toMatch(/^200/)
      await client.query(`ALTER DATABASE ${place.name} WITH ALLOW_CONNECTIONS true`)
    })
    await expect.poll(() => ask('ready'), within).toBe('200 healthy')
    worker.child.kill('SIGTERM')
    expect(await worker.done).toBe(0)
  })

  it(
    'answer nothing while its event loop stands still, so that the orchestrator ends it',
    { timeout: deadlineMs },
    async () => {
      const place = await sqlitePlace()
      scene.write(
        'stuck.ts',
        userFile(`
const resize = defineJob({ type: 'image.resize.v1', payload: z.object({ id: z.string() }) })
export const handlers = [
  defineHandler(resize, { sideEffects: 'none', async run(_, ctx) { ctx.log('stuck'); setImmediate(() => { for (;;); }) } }),
]
`),
      )
      const worker = spawnCli(
        ['work', 'stuck.ts', '--db', place.location, '--http', '127.0.0.1:0'],
        scene.cwd,
        deadlineMs,
      )
      onTestFinished(() => void worker.child.kill('SIGKILL'))
      const url = /url=(\S+)/.exec(await worker.line(/cli\.listening/))?.[1] ?? ''
      await worker.line(/worker\.started/)
      await scene.chokaq.enqueue(resize, { id: 'a' })
      await worker.line(/stuck/)
      await expect(fetch(`${url}/health/live`, { signal: AbortSignal.timeout(2_000) })).rejects.toThrow()
      worker.child.kill('SIGKILL')
      await worker.done
    },
  )

  it('refuses limits that cannot be, before any job runs', { timeout: deadlineMs }, async () => {
    const place = await sqlitePlace()
    scene.write('wrong.ts', file.replace(`'300ms'`, `'2s'`))
    const worker = spawnCli(
      ['work', 'wrong.ts', '--db', place.location, '--http', '127.0.0.1:0'],
      scene.cwd,
      deadlineMs,
    )
    expect(await worker.done).not.toBe(0)
    expect(worker.stderr()).toContain('degradedLag')
  })
})
