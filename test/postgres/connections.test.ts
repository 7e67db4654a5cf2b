// Connections that are used up, ended, half open or refused cost nobody a lease, and never end the process.
import { execFile } from 'node:child_process'
import { createServer, connect as connectTo, type AddressInfo, type Server, type Socket } from 'node:net'
import { mkdtempSync, chmodSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { isTransient } from '../../src/core/errors.ts'
import type { StorageDriver } from '../../src/core/storage.ts'
import { newJob } from '../../src/testing/conformance/new-job.ts'
import { soon } from '../soon.ts'
import { createDatabase } from './database.ts'
import { beat, codeOf, open, patient, register, roundTrip, runtime } from './scene.ts'
import { startServer } from './server.ts'

const database = await createDatabase()
afterAll(() => database.drop())

const drivers: StorageDriver[] = []
const opened: typeof open = (...args) => {
  const driver = open(...args)
  drivers.push(driver)
  return driver
}
afterEach(async () => {
  await Promise.all(drivers.splice(0).map((driver) => driver.close()))
})

describe("a user's pool that is used up", () => {
  it('lends its settings only: heartbeat, outcomes and enqueue go on', async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 2 })
    const held = await Promise.all([pool.connect(), pool.connect()])
    for (const client of held) await client.query('BEGIN')
    const driver = opened(pool)
    await register(driver)
    expect(await beat(driver)).toMatchObject({ kind: 'alive', cancelRequested: [] })
    expect(await roundTrip(driver)).toBe('completed')
    for (const client of held) client.release(true)
    await pool.end()
  })

  it("of the storage's own does not cost a beat or an outcome", async () => {
    const driver = opened(database.url, { ...patient, poolSize: 1 })
    await register(driver)
    const blocker = await blockMainLane(driver)
    expect(await beat(driver)).toMatchObject({ kind: 'alive', cancelRequested: [] })
    expect(await driver.settle([{ lease: { jobId: runtime.newId(), token: 1 }, action: { kind: 'release' } }])).toEqual(
      [{ kind: 'lost' }],
    )
    await blocker()
  })
})

async function waitersAre(count: number): Promise<void> {
  await vi.waitFor(async () => {
    const pids = await database.query(
      `SELECT DISTINCT pid FROM pg_locks JOIN pg_stat_activity a USING (pid)
        WHERE NOT granted AND a.datname = current_database()`,
    )
    expect(pids).toHaveLength(count)
  }, soon)
}

/** A user's lock on a table that the only main connection waits for. */
async function blockMainLane(driver: StorageDriver): Promise<() => Promise<void>> {
  const client = new pg.Client(database.url)
  await client.connect()
  await client.query('BEGIN; LOCK TABLE chokaq.audit_log IN ACCESS EXCLUSIVE MODE')
  const waiting = codeOf(driver.inspector.setQueue({ name: 'default', paused: false }, { actor: 'ada', note: '' }))
  await waitersAre(1)
  return async () => {
    await client.query('ROLLBACK')
    await client.end()
    await waiting
  }
}

const terminateAll = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND application_name LIKE 'chokaq %'`

describe('backends that are terminated', () => {
  it('are replaced, all of them, again and again', async () => {
    const driver = opened(database.url)
    await register(driver)
    for (let round = 0; round < 5; round += 1) {
      await database.query(terminateAll)
      await vi.waitFor(async () => expect(await roundTrip(driver)).toBe('completed'), soon)
      expect(await beat(driver)).toMatchObject({ kind: 'alive' })
    }
  })

  it('in the middle of a statement are reported as unknown, never as done', async () => {
    const driver = opened(database.url, patient)
    await driver.ready()
    const unblock = await blockMainLane(driver)
    const waiting = driver.inspector.setQueue({ name: 'other', paused: true }, { actor: 'ada', note: '' })
    const code = codeOf(waiting)
    await waitersAre(2)
    await database.query(`${terminateAll} AND wait_event_type = 'Lock'`)
    expect(['CHOKAQ_STORAGE_FAILED', 'CHOKAQ_STORAGE_BUSY']).toContain(await code)
    await waiting.catch((error: unknown) => expect(isTransient(error)).toBe(true))
    await unblock()
  })

  it('do not silence the listener: it comes back and hears the next commit', async () => {
    const listening = opened(database.url)
    const other = opened(database.url)
    await Promise.all([listening.ready(), other.ready()])
    let calls = 0
    listening.onWake(() => void (calls += 1))
    const isListening = async (): Promise<void> => {
      const rows = await database.query(
        `SELECT 1 FROM pg_stat_activity WHERE application_name = 'chokaq listen' AND query LIKE 'LISTEN%'
          AND datname = current_database()`,
      )
      expect(rows).toHaveLength(1)
    }
    await vi.waitFor(isListening, soon)
    await database.query(terminateAll)
    await vi.waitFor(isListening, soon)
    const before = calls
    await vi.waitFor(async () => expect((await other.enqueue([newJob(runtime)]))[0]?.kind).toBe('inserted'), soon)
    await vi.waitFor(() => expect(calls).toBeGreaterThan(before), soon)
  })
})

describe('a server that is stopped at once', () => {
  it('ends no process, and the work goes on when it is back', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'chokaq-stopped-'))
    chmodSync(folder, 0o755)
    const server = await startServer(join(folder, 'cluster'))
    try {
      const driver = opened(server.url)
      driver.onWake(() => undefined)
      await register(driver)
      for (let round = 0; round < 2; round += 1) {
        server.stop('immediate')
        const failed: unknown = await roundTrip(driver).then(
          () => undefined,
          (error: unknown) => error,
        )
        expect(isTransient(failed), String(failed)).toBe(true)
        server.start()
        await vi.waitFor(async () => expect(await roundTrip(driver)).toBe('completed'), soon)
        expect(await beat(driver)).toMatchObject({ kind: 'alive' })
      }
      await driver.close()
    } finally {
      server.stop('immediate')
      rmSync(folder, { recursive: true, force: true })
    }
  }, 60_000)
})

interface Proxy {
  readonly url: string
  /** Swallows what is sent on the connections of now, in both directions, without closing them. */
  blackHole(): void
  close(): void
}

async function proxyTo(url: string): Promise<Proxy> {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  let lost = new WeakSet<Socket>()
  const server: Server = createServer({ allowHalfOpen: true }, (incoming) => {
    const outgoing = connectTo({ port: Number(port), host: hostname, allowHalfOpen: true })
    const pass = (from: Socket, to: Socket): void => {
      sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => (lost.has(incoming) ? undefined : to.destroy()))
      from.on('end', () => (lost.has(incoming) ? undefined : to.end()))
      from.on('data', (data) => (lost.has(incoming) ? undefined : to.write(data)))
    }
    pass(incoming, outgoing)
    pass(outgoing, incoming)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const proxied = new URL(url)
  proxied.port = String((server.address() as AddressInfo).port)
  return {
    url: proxied.href,
    blackHole() {
      lost = new WeakSet(sockets)
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

describe('a connection that is half open', () => {
  it('is found by the deadline of the next statement, and replaced', async () => {
    const proxy = await proxyTo(database.url)
    const driver = opened(proxy.url, { statementDeadlineMs: 500, poolSize: 1 })
    await register(driver)
    expect(await roundTrip(driver)).toBe('completed')
    proxy.blackHole()
    // Not repeatable, so the caller is told that nobody knows.
    expect(await codeOf(driver.enqueue([newJob(runtime)]))).toBe('CHOKAQ_STORAGE_FAILED')
    // Repeatable, so nobody notices but the clock.
    expect(await beat(driver)).toMatchObject({ kind: 'alive' })
    expect(await roundTrip(driver)).toBe('completed')
    await driver.close()
    proxy.close()
  })

  it('does not hold up a close', async () => {
    const proxy = await proxyTo(database.url)
    const driver = opened(proxy.url)
    await register(driver)
    expect(await roundTrip(driver)).toBe('completed')
    proxy.blackHole()
    await driver.close()
    proxy.close()
  })
})

describe('behind a pooler in transaction mode', () => {
  it('nothing is set per session, nothing listens, and everything works', async () => {
    const driver = opened(database.url, { pooler: 'transaction' })
    expect(driver.capabilities.supportsListen).toBe(false)
    driver.onWake(() => undefined)
    await register(driver)
    expect(await roundTrip(driver)).toBe('completed')
    expect(await driver.inspector.queues()).toEqual(expect.any(Array))
    const sessions = await database.query<{ readonly query: string }>(
      `SELECT query FROM pg_stat_activity WHERE application_name LIKE 'chokaq %' AND datname = current_database()`,
    )
    expect(sessions.map(({ query }) => query).filter((query) => /^(LISTEN|SET )/.test(query))).toEqual([])
  })
})

describe('a closed storage', () => {
  it('was closed before the program ended, even where that was all it had to do', async () => {
    const register = new URL('../../node_modules/jiti/lib/jiti-register.mjs', import.meta.url).href
    const program = fileURLToPath(new URL('fixtures/close-and-end.ts', import.meta.url))
    const words = ['--conditions=chokaq-source', '--import', register, program, database.url]
    expect(await promisify(execFile)(process.execPath, words)).toMatchObject({ stdout: 'closed' })
  }, 60_000)

  it('leaves no connection behind', async () => {
    const driver = opened(database.url)
    driver.onWake(() => undefined)
    await register(driver)
    await roundTrip(driver)
    await driver.close()
    await vi.waitFor(async () => {
      const sessions = await database.query(
        `SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'chokaq %' AND datname = current_database()`,
      )
      expect(sessions).toEqual([])
    }, soon)
  })
})
