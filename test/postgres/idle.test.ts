// What a worker without work asks of the server, counted over three minutes of virtual time, retention included.
import { createChokaQ, defineJob } from 'chokaq'
import { postgres } from 'chokaq/postgres'
import { createFakeRuntime } from 'chokaq/testing'
import { createWorker, defineHandler } from 'chokaq/worker'
import { z } from 'zod'
import { afterAll, expect, it } from 'vitest'
import { createDatabase } from './database.ts'
import { virtualPool, yieldToDatabase } from './virtual-time.ts'

const database = await createDatabase()
afterAll(() => database.drop())

const minutes = 3

it.each([1, 8, 50])('an idle worker on %i queues sends two statements a second at most', async (queueCount) => {
  const runtime = createFakeRuntime({ yieldToHost: yieldToDatabase })
  const texts: string[] = []
  // Several statements in one message count as several.
  const count = (text: string): void => void texts.push(...text.split(';').filter((each) => each.trim() !== ''))
  const pool = virtualPool(database.url, runtime.clock, count)
  const chokaq = createChokaQ({ runtime, storage: postgres(pool) })
  const handlers = Array.from({ length: queueCount }, (_, n) =>
    defineHandler(defineJob({ type: `idle-${n}.v1`, queue: `queue-${n}`, payload: z.object({}) }), {
      sideEffects: 'none',
      run: async () => undefined,
    }),
  )
  const worker = createWorker({ chokaq, handlers })
  await runtime.complete(worker.start())
  await runtime.advance(20_000)
  texts.length = 0
  await runtime.advance(minutes * 60_000)
  const perSecond = texts.length / (minutes * 60)
  expect(perSecond).toBeLessThanOrEqual(2)
  // It does look: a count of nothing would say that the counting is broken.
  expect(perSecond).toBeGreaterThan(0.5)
  await runtime.complete(worker.stop())
  await runtime.complete(chokaq.close())
  await pool.end()
})
