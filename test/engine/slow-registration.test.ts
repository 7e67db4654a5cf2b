// A worker starts on a database that is slow at that moment: no lease depends on its registration yet.
import { describe, expect, test } from 'vitest'
import { resize, resizing } from './contracts.ts'
import { storages } from './storages.ts'
import { worlds, type World } from './world.ts'

function delayRegistration(world: World, ms: number): void {
  const register = world.driver.registerWorker.bind(world.driver)
  world.driver.registerWorker = async (worker) => {
    await new Promise<void>((resolve) => void world.runtime.scheduler.after(ms, resolve))
    return register(worker)
  }
}

describe.each(storages)('a worker whose registration is slow on $name', (kind) => {
  const open = worlds(kind)

  test('starts, though a statement that a lease depends on would have been given up', async () => {
    const world = open()
    delayRegistration(world, 10_000)
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const worker = await world.start([resizing(async () => 'late')])
    await world.runtime.settle()
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 1 })
    await world.stop(worker)
  })

  test('refuses to start where the answer comes later than its own fence', async () => {
    const world = open()
    delayRegistration(world, 21_000)
    await expect(world.start([resizing(async () => 'late')])).rejects.toMatchObject({ code: 'CHOKAQ_STORAGE_FAILED' })
    await world.runtime.advance(1_000)
  })
})
