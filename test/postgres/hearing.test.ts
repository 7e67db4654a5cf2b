// Whoever cannot hear the commits of other processes is told, and told once: with LISTEN turned off, with a server that
// refuses it for a while, and with a session that is given to somebody else.
import pg from 'pg'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { postgres, type PostgresOptions } from 'chokaq/postgres'
import type { Runtime } from '../../src/core/runtime.ts'
import type { Hearing, StorageDriver } from '../../src/core/storage.ts'
import { leaseTimes } from '../crash/fixtures/work.ts'
import { soon } from '../soon.ts'
import { createDatabase } from './database.ts'
import { Plant } from './plant.ts'
import { runtime } from './scene.ts'
import { WireProxy } from './wire-proxy.ts'

const database = await createDatabase()
afterAll(() => database.drop())

/** How often a listener asks whether it still listens. */
const pulseMs = 15_000

/** That question soon, everything else in its time. */
const impatient: Runtime = {
  ...runtime,
  scheduler: {
    ...runtime.scheduler,
    after: (delayMs, task, options) => runtime.scheduler.after(delayMs === pulseMs ? 50 : delayMs, task, options),
  },
}

interface Ear {
  readonly driver: StorageDriver
  readonly told: readonly Hearing[]
  /** How often it was woken; the first time says that it listens from now on. */
  readonly calls: () => number
}

async function listenOn(
  target: Parameters<typeof postgres>[0],
  on: Runtime = runtime,
  options: PostgresOptions = {},
): Promise<Ear> {
  const driver = postgres(target, options).open(on)
  onTestFinished(() => driver.close())
  await driver.ready()
  const told: Hearing[] = []
  let calls = 0
  driver.onWake(
    () => void (calls += 1),
    (hearing) => void told.push(hearing),
  )
  await vi.waitFor(() => expect(calls).toBe(1), soon)
  return { driver, told, calls: () => calls }
}

describe('a storage that listens', () => {
  it('tells once that LISTEN fails, and once that it works again', async () => {
    const proxy = await WireProxy.before(database.url)
    onTestFinished(() => proxy.close())
    const { driver, told, calls } = await listenOn(proxy.url)
    // A connection that is back at the first try is no news.
    proxy.dropAll()
    await vi.waitFor(() => expect(calls()).toBe(2), soon)
    expect(told).toEqual([])

    proxy.isDown = true
    proxy.dropAll()
    const failed = { hears: false, error: expect.objectContaining({ code: 'CHOKAQ_STORAGE_FAILED' }) as unknown }
    await vi.waitFor(() => expect(told).toEqual([failed]), soon)
    const later: Hearing[] = []
    driver.onWake(
      () => undefined,
      (hearing) => void later.push(hearing),
    )
    expect(later).toEqual([failed])

    proxy.disarm()
    await vi.waitFor(() => expect(told).toHaveLength(2), soon)
    expect([told, later]).toEqual([
      [failed, { hears: true }],
      [failed, { hears: true }],
    ])
  })

  it('leaves no connection behind whose LISTEN had no answer', async () => {
    const proxy = await WireProxy.before(database.url)
    onTestFinished(() => proxy.close())
    let [madeCount, endedCount] = [0, 0]
    class Counted extends pg.Client {
      constructor(settings: pg.ClientConfig = {}) {
        super(settings)
        if (settings.application_name !== 'chokaq listen') return
        madeCount += 1
        this.once('end', () => (endedCount += 1))
      }
    }
    const pool = new pg.Pool({ connectionString: proxy.url, Client: Counted })
    const { calls } = await listenOn(pool, runtime, { statementDeadlineMs: 2_000 })
    // Its start, its settings, and then the LISTEN.
    proxy.arm({ at: 3, kind: 'half-open' })
    proxy.dropAll()
    await vi.waitFor(() => expect(proxy.struck).toMatch(/^LISTEN/), soon)
    proxy.disarm()
    await vi.waitFor(() => expect(calls()).toBe(2), soon)
    expect([madeCount, endedCount]).toEqual([3, 2])
  })

  it('tells where its session is no longer its own, and believes LISTEN no more until it was asked', async () => {
    const clients: pg.Client[] = []
    class Known extends pg.Client {
      constructor(settings: pg.ClientConfig = {}) {
        super(settings)
        if (settings.application_name === 'chokaq listen') clients.push(this)
      }
    }
    const { told } = await listenOn(new pg.Pool({ connectionString: database.url, Client: Known }), impatient)
    await clients[0]?.query('UNLISTEN *')
    await vi.waitFor(() => expect(told.map(({ hears }) => hears)).toEqual([false, true]), soon)
    const [first] = told
    expect(String(first?.hears === false ? first.error : '')).toContain("set pooler: 'transaction'")
  })
})

describe('a worker', () => {
  async function events(options: PostgresOptions): Promise<readonly unknown[]> {
    const plant = await Plant.open(database, postgres(database.url, options))
    onTestFinished(() => plant.close())
    await plant.flow(3)
    return plant.named('storage.polling', 'storage.listening')
  }

  it.each([{ listen: false }, { pooler: 'transaction' }] as const)('says with %o that it polls', async (options) => {
    expect(await events(options)).toEqual([
      { name: 'storage.polling', workerId: expect.any(String) as string, pollMs: leaseTimes.poll, failure: null },
    ])
  })

  it('says nothing of it while it listens, and says why it cannot', async () => {
    expect(await events({})).toEqual([])
    const proxy = await WireProxy.before(database.url)
    onTestFinished(() => proxy.close())
    const plant = await Plant.open(database, postgres(proxy.url))
    onTestFinished(() => plant.close())
    await plant.flow(3)
    proxy.isDown = true
    proxy.dropAll()
    await vi.waitFor(() => expect(plant.named('storage.polling')).toHaveLength(1), soon)
    expect(plant.named('storage.polling')[0]?.failure).toMatchObject({ code: 'CHOKAQ_STORAGE_FAILED' })
    proxy.disarm()
    await vi.waitFor(() => expect(plant.named('storage.listening')).toHaveLength(1), soon)
    await plant.flow(3)
    expect(plant.named('storage.polling')).toHaveLength(1)
  })
})
