// A poison job must not take healthy ones with it: what runs beside a suspect, and who is charged for a crash.
import { defineJob } from 'chokaq'
import { defineHandler } from 'chokaq/worker'
import { expect, test } from 'vitest'
import { resize, resizing } from '../engine/contracts.ts'
import { sqliteInMemory } from '../engine/sqlite-storage.ts'
import { gate, worlds, type World } from '../engine/world.ts'

const open = worlds(sqliteInMemory)
const plain = { whenInterrupted: 'resume', crashBudget: 2, fetchCrashBudget: 10, retryLifetimeMs: 3_600_000 } as const
const policy = { ...plain, type: 'image.resize.v1', keyed: false, fastStart: true, timeoutMs: 1_000, markerLifeMs: 0 }

/** Jobs that ran when a worker died. */
async function suspects(world: World, count: number): Promise<readonly string[]> {
  const ids: string[] = []
  for (let i = 0; i < count; i += 1) ids.push((await world.chokaq.enqueue(resize, { id: `s${i}` })).id)
  await world.driver.fetch({ workerId: 'dead', queue: 'default', limit: count, policies: [policy] })
  await world.driver.rescue({ deadWorkerIds: ['dead'], limit: count })
  return ids
}

test('I9 the next suspect begins only when the outcome of the one before is durable', async () => {
  const world = open()
  const [first] = await suspects(world, 2)
  let cut = false
  world.fault = (call) => {
    if (call !== 'settle' || cut) return 'none'
    cut = true
    return 'before'
  }
  const seen: string[] = []
  const worker = await world.start([
    resizing(async () => {
      seen.push(await world.state(first ?? ''))
    }),
  ])
  await world.runtime.runUntil(() => seen.length === 2)
  await world.stop(worker)
  expect(seen).toEqual(['processing', 'completed'])
})

test('I9 a suspect is started before its schema reads it, so that the crash is its own', async () => {
  const world = open()
  const states: string[] = []
  const waiting = gate()
  const schema = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: async (value: unknown) => {
        states.push(await world.state(id))
        return { value }
      },
    },
  } as const
  const picky = defineJob({ type: 'image.resize.v1', payload: schema })
  const [id = ''] = await suspects(world, 1)
  const handler = defineHandler(picky, { sideEffects: 'none', run: async () => waiting.open() })
  const worker = await world.start([handler])
  await world.runtime.complete(waiting.promise)
  await world.stop(worker)
  expect(states).toEqual(['processing'])
})
