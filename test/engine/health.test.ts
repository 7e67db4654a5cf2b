// Health as probes and people ask for it: the storage, the lag of queues, and a worker's loops.
import { describe, expect, test } from 'vitest'
import { createChokaQ } from 'chokaq'
import { healthHandler } from 'chokaq/http'
import { sqlite } from 'chokaq/sqlite'
import { resize, resizing } from './contracts.ts'
import { storages } from './storages.ts'
import { ada, gate, worlds, type World } from './world.ts'

async function probe(handler: (request: Request) => Promise<Response>, path: string, method = 'GET') {
  const response = await handler(new Request(`http://localhost${path}`, { method }))
  return { status: response.status, body: await response.json() }
}

function cutAll(world: World): void {
  world.fault = () => 'before'
}

describe.each(storages)('the health of a client on $name', (kind) => {
  const open = worlds(kind)

  test('follows the lag of its queues, except paused ones', async () => {
    const world = open()
    const { chokaq, runtime } = world
    expect(await chokaq.health()).toEqual({ state: 'healthy', reasons: [] })
    await chokaq.enqueue(resize, { id: 'a' })
    await runtime.advance(5_000)
    expect(await chokaq.health()).toMatchObject({
      state: 'degraded',
      reasons: [{ check: 'queue-lag', state: 'degraded', text: 'A job of queue "default" has waited for 5.0 s.' }],
    })
    expect(await chokaq.health({ queues: ['other'] })).toEqual({ state: 'healthy', reasons: [] })
    expect(await chokaq.health({ degradedLag: '1m', unhealthyLag: '2m' })).toMatchObject({ state: 'healthy' })
    await runtime.advance(5_000)
    expect(await chokaq.health()).toMatchObject({ state: 'unhealthy' })
    await chokaq.queues.pause('default', ada)
    expect(await chokaq.health()).toMatchObject({ state: 'healthy' })
  })

  test('is unhealthy while the storage fails or hangs, and never throws for it', async () => {
    const world = open()
    cutAll(world)
    expect(await world.chokaq.health()).toEqual({
      state: 'unhealthy',
      reasons: [{ check: 'storage', state: 'unhealthy', text: 'The storage does not answer: CHOKAQ_STORAGE_FAILED.' }],
    })
    world.fault = () => 'hang'
    const hanging = world.chokaq.health({ timeout: '300ms' })
    await world.runtime.advance(300)
    expect(await hanging).toMatchObject({ state: 'unhealthy', reasons: [{ check: 'storage' }] })
    world.fault = () => 'none'
  })

  test.each([{ degradedLag: '20s' }, { timeout: 0 }, { unhealthyLag: 'soon' as '1s' }] as const)(
    'refuses the options %j',
    async (options) => {
      await expect(open().chokaq.health(options)).rejects.toThrow(/Lag|timeout/)
    },
  )
})

describe.each(storages)('the health of a worker on $name', (kind) => {
  const open = worlds(kind)

  test('is healthy while it runs, idle or full, and unhealthy once it drains', async () => {
    const world = open()
    const held = gate()
    const worker = await world.start([resizing(() => held.promise)], { concurrency: 1 })
    await world.runtime.settle()
    expect(await worker.health()).toEqual({ state: 'healthy', reasons: [] })
    await world.runtime.advance(600_000)
    expect(await worker.health()).toEqual({ state: 'healthy', reasons: [] })
    await world.chokaq.enqueue(resize, { id: 'a' })
    await world.runtime.advance(600_000)
    expect(await worker.health()).toEqual({ state: 'healthy', reasons: [] })
    held.open()
    await world.runtime.settle()
    expect(await worker.health()).toEqual({ state: 'healthy', reasons: [] })
    await world.stop(worker)
    expect(await worker.health()).toMatchObject({ state: 'unhealthy', reasons: [{ text: 'The worker is stopped.' }] })
  })

  test('tells missed beats apart from a fence', async () => {
    const world = open()
    const worker = await world.start([resizing(async () => undefined)])
    world.fault = (call) => (call === 'heartbeat' ? 'before' : 'none')
    await world.runtime.advance(14_000)
    expect(await worker.health()).toMatchObject({ state: 'degraded', reasons: [{ check: 'beat', state: 'degraded' }] })
    world.fault = () => 'none'
    await world.stop(worker)
  })
})

describe.each(storages)('probes on $name', (kind) => {
  const open = worlds(kind)

  test('of life pass while the storage is away, those of readiness do not', async () => {
    const world = open()
    const worker = await world.start([resizing(async () => undefined)])
    await world.runtime.settle()
    const handler = healthHandler({ chokaq: world.chokaq, worker })
    expect(await probe(handler, '/health/live')).toEqual({ status: 200, body: { state: 'healthy', reasons: [] } })
    expect(await probe(handler, '/ops/health/ready/')).toEqual({ status: 200, body: { state: 'healthy', reasons: [] } })
    cutAll(world)
    await world.runtime.advance(60_000)
    expect(await probe(handler, '/health/live')).toMatchObject({ status: 200 })
    expect(await probe(handler, '/health/ready')).toMatchObject({ status: 503, body: { state: 'unhealthy' } })
    world.fault = () => 'none'
    await world.stop(worker)
    await world.runtime.advance(1_000)
    expect(await probe(handler, '/health/live')).toMatchObject({ status: 503 })
  })

  test('ask the storage once a second, however many they are', async () => {
    const world = open()
    const handler = healthHandler({ chokaq: world.chokaq })
    let count = 0
    world.fault = (call) => {
      if (call === 'inspector.queues') count += 1
      return 'none'
    }
    await Promise.all(Array.from({ length: 50 }, () => probe(handler, '/health/ready')))
    await world.runtime.advance(1_000)
    await probe(handler, '/health/ready')
    expect(count).toBe(2)
  })

  test('answer nothing else', async () => {
    const handler = healthHandler({ chokaq: open().chokaq })
    expect(await probe(handler, '/health')).toMatchObject({ status: 404 })
    expect(await probe(handler, '/health/ready', 'POST')).toMatchObject({ status: 405 })
  })
})

test('a database without our tables is told as such', async () => {
  const chokaq = createChokaQ({ storage: sqlite(':memory:', { migrate: false }) })
  expect(await chokaq.health()).toEqual({
    state: 'unhealthy',
    reasons: [
      { check: 'schema', state: 'unhealthy', text: 'The tables are not those of this version: CHOKAQ_SCHEMA_MISSING.' },
    ],
  })
  await chokaq.close()
})
