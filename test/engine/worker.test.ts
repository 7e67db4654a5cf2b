// The worker itself: its options, its boot check, tick, and middleware.
import { defineJob, type ChokaQError } from 'chokaq'
import { createWorker, defineHandler, type Middleware } from 'chokaq/worker'
import { z } from 'zod'
import { describe, expect, test } from 'vitest'
import { capture, capturing, resize, resizing } from './contracts.ts'
import { sqliteInMemory } from './sqlite-storage.ts'
import { storages } from './storages.ts'
import { codeOf, worlds } from './world.ts'

const idle = resizing(async () => undefined)

describe('createWorker refuses', () => {
  const open = worlds(sqliteInMemory)

  const cases: readonly { what: string; options: object; code: string; text: RegExp }[] = [
    { what: 'no handler', options: { handlers: [] }, code: 'CHOKAQ_CONFIG_INVALID', text: /0 handlers/ },
    {
      what: 'two handlers of a type',
      options: { handlers: [idle, idle] },
      code: 'CHOKAQ_HANDLER_INVALID',
      text: /two/,
    },
    {
      what: 'a handler that defineHandler did not make',
      options: { handlers: [{ job: resize }] },
      code: 'CHOKAQ_HANDLER_INVALID',
      text: /defineHandler/,
    },
    {
      what: 'an unknown option, with the one that was meant',
      options: { concurency: 3 },
      code: 'CHOKAQ_CONFIG_INVALID',
      text: /concurrency/,
    },
    { what: 'a concurrency of 0', options: { concurrency: 0 }, code: 'CHOKAQ_OPTION_INVALID', text: /1 to 1000/ },
    { what: 'a prefetch of 501', options: { prefetch: 501 }, code: 'CHOKAQ_OPTION_INVALID', text: /1 to 500/ },
    { what: 'a bad duration', options: { poll: 'often' }, code: 'CHOKAQ_DURATION_INVALID', text: /poll/ },
    { what: 'what is no client', options: { chokaq: {} }, code: 'CHOKAQ_CONFIG_INVALID', text: /createChokaQ/ },
  ]

  test.each(cases)('$what', ({ options, code, text }) => {
    const world = open()
    const make = (): unknown => createWorker({ chokaq: world.chokaq, handlers: [idle], ...options })
    expect(make).toThrow(expect.objectContaining({ code }) as Error)
    expect(make).toThrow(text)
  })
})

describe('the boot check', () => {
  const open = worlds(sqliteInMemory)

  test('refuses what threatens safety, with every rule, and registers nothing', async () => {
    const world = open()
    const worker = world.worker([idle], { fenceAfter: '29s', archiveRetention: '1d' })
    const error = (await worker.start().catch((thrown: unknown) => thrown)) as ChokaQError
    expect(error.code).toBe('CHOKAQ_BOOT_REFUSED')
    expect(error.message).toMatch(/fence-before-dead/)
    expect(error.message).toMatch(/archive-outlives-resend/)
    expect(worker.state).toBe('stopped')
    expect(await world.chokaq.insight.workers()).toEqual([])
    expect(await codeOf(worker.start())).toBe('CHOKAQ_WORKER_STATE')
  })

  test('is waived rule by rule, with a reason', async () => {
    const world = open()
    const waive = { 'archive-outlives-resend': 'history is in the warehouse' }
    const worker = await world.start([idle], { archiveRetention: '1d', waive })
    expect(world.of('worker.warning')).toMatchObject([
      { rule: 'archive-outlives-resend', text: expect.stringMatching(/warehouse/) as string },
    ])
    await world.stop(worker)
    const without = world.worker([idle], { archiveRetention: '1d', waive: { 'archive-outlives-resend': '' } })
    expect(await codeOf(without.start())).toBe('CHOKAQ_BOOT_REFUSED')
    const unknown = world.worker([idle], { waive: { nonsense: 'because' } })
    expect(await codeOf(unknown.start())).toBe('CHOKAQ_BOOT_REFUSED')
  })

  test('writes the answers of each type for those who have no code', async () => {
    const world = open()
    const worker = await world.start([idle, capturing()])
    const types = await world.chokaq.insight.jobTypes()
    expect(types.map(({ type, keyed }) => [type, keyed])).toEqual([
      ['image.resize.v1', false],
      ['payment.capture.v1', true],
    ])
    const answers = JSON.parse(types[1]?.answers ?? '') as object
    expect(answers).toMatchObject({
      key: 'payload',
      sideEffects: 'unique-constraint',
      whenInterrupted: 'resume',
      timeoutMs: 900_000,
      retry: { attempts: 22 },
      continueWithinMs: expect.any(Number) as number,
    })
    expect(JSON.parse(types[0]?.payloadSchema ?? 'null')).toMatchObject({ properties: { id: { type: 'string' } } })
    await world.stop(worker)
  })
})

describe('the state of a worker', () => {
  const open = worlds(sqliteInMemory)

  test('goes from new over running to stopped, once', async () => {
    const world = open()
    const worker = world.worker([idle])
    const states = [worker.state]
    const run = worker.run()
    states.push(worker.state)
    await world.runtime.settle()
    states.push(worker.state)
    expect(await codeOf(worker.start())).toBe('CHOKAQ_WORKER_STATE')
    expect(await codeOf(worker.tick())).toBe('CHOKAQ_WORKER_STATE')
    const stopping = worker.stop()
    states.push(worker.state)
    await world.runtime.complete(Promise.all([stopping, run]))
    states.push(worker.state)
    expect(states).toEqual(['new', 'starting', 'running', 'stopping', 'stopped'])
    expect(world.events.map(({ name }) => name).filter((name) => name.startsWith('worker.'))).toEqual([
      'worker.started',
      'worker.stopping',
      'worker.stopped',
    ])
  })

  test('survives a long wait between making and starting it', async () => {
    const world = open()
    const worker = world.worker([idle])
    await world.runtime.advance(3_600_000)
    await world.runtime.complete(worker.start())
    await world.runtime.advance(60_000)
    expect(world.of('worker.fenced')).toEqual([])
    await world.stop(worker)
  })
})

describe.each(storages)('tick on $name', (kind) => {
  const open = worlds(kind)

  test('does one round: promotes, fetches, runs, settles, and says how many', async () => {
    const world = open()
    await world.chokaq.enqueue(resize, { id: 'now' })
    const later = await world.chokaq.enqueue(resize, { id: 'later' }, { delay: '1m' })
    const worker = world.worker([idle])
    expect(await worker.tick()).toBe(1)
    expect(await worker.tick()).toBe(0)
    await world.runtime.advance(60_000)
    expect(await worker.tick()).toBe(1)
    expect(await world.state(later.id)).toBe('completed')
  })

  test('calls no handler under a beat that is too old', async () => {
    const world = open()
    await world.chokaq.enqueueMany(resize, [{ id: 'long' }, { id: 'next' }])
    const ran: string[] = []
    const handler = resizing(async (p) => {
      ran.push(p.id)
      // Within a tick nothing beats.
      if (p.id === 'long') await new Promise<void>((resolve) => world.runtime.scheduler.after(20_000, resolve))
    })
    const worker = world.worker([handler], { concurrency: 1 })
    expect(await world.runtime.complete(worker.tick())).toBe(2)
    expect(ran).toEqual(['long'])
    expect(world.of('job.released')).toMatchObject([{ why: 'the last confirmed beat is too old' }])
    expect(await worker.tick()).toBe(1)
    expect(ran).toEqual(['long', 'next'])
  })

  test('comes back under a new id where others have declared it dead', async () => {
    const world = open()
    const worker = world.worker([idle])
    await worker.tick()
    const before = worker.id
    await world.driver.rescue({ deadWorkerIds: [before], provenDeadIds: [], limit: 10 })
    await world.chokaq.enqueue(resize, { id: 'a' })
    expect(await worker.tick()).toBe(0)
    expect(worker.id).not.toBe(before)
    expect(await worker.tick()).toBe(1)
  })
})

describe('middleware', () => {
  const open = worlds(sqliteInMemory)

  async function runWith(middleware: readonly Middleware[], run: () => Promise<unknown> = async () => 'result') {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    await world.drain([resizing(run, { retry: { attempts: 1 } })], { middleware })
    return world.job(id)
  }

  test('is an onion, the first one outermost, and sees which job it is', async () => {
    const order: string[] = []
    const layer =
      (name: string): Middleware =>
      async (ctx, next) => {
        order.push(`${name} in ${ctx.type} ${ctx.queue} ${JSON.stringify(ctx.payload)}`)
        const result = await next()
        order.push(`${name} out`)
        return `${name}(${String(result)})`
      }
    const job = await runWith([layer('a'), layer('b')])
    expect(job.result).toBe('"a(b(result))"')
    const seen = 'image.resize.v1 default {"id":"a"}'
    expect(order).toEqual([`a in ${seen}`, `b in ${seen}`, 'b out', 'a out'])
  })

  test('may answer without the handler, and may swallow or turn its error', async () => {
    let ran = false
    expect((await runWith([async () => 'cached'], async () => (ran = true))).result).toBe('"cached"')
    expect(ran).toBe(false)
    const failing = (): Promise<never> => Promise.reject(new Error('no'))
    expect((await runWith([(_ctx, next) => next().catch(() => 'saved')], failing)).result).toBe('"saved"')
    const turning: Middleware = (_ctx, next) => next().catch(() => Promise.reject(new Error('turned')))
    expect((await runWith([turning], failing)).failure?.message).toBe('turned')
  })

  test('that calls next() twice fails, and the handler has run once', async () => {
    let runs = 0
    const twice: Middleware = async (_ctx, next) => {
      await next()
      return next()
    }
    const job = await runWith([twice], async () => (runs += 1))
    expect(runs).toBe(1)
    expect(job).toMatchObject({ state: 'dead', failure: { code: 'CHOKAQ_NEXT_TWICE' } })
  })

  test('that does not wait for next() completes no job whose handler still runs or fails', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const hasty: Middleware = async (_ctx, next) => {
      void next()
      return 'hasty'
    }
    const handler = resizing(
      () =>
        new Promise((_resolve, reject) =>
          world.runtime.scheduler.after(50, () => {
            reject(new Error('slow no'))
          }),
        ),
      { retry: { attempts: 1 } },
    )
    await world.drain([handler], { middleware: [hasty] })
    expect(await world.job(id)).toMatchObject({ state: 'dead', failure: { message: 'slow no' } })
  })

  test('sees what a handler throws before its first await as a rejection', async () => {
    const seen: unknown[] = []
    const watching: Middleware = (_ctx, next) =>
      next().catch((error: unknown) => {
        seen.push((error as Error).message)
        return 'ok'
      })
    const job = await runWith([watching], () => {
      throw new Error('at once')
    })
    expect(seen).toEqual(['at once'])
    expect(job.result).toBe('"ok"')
  })

  test('is inside the claim: a duplicate never reaches it', async () => {
    const world = open()
    let calls = 0
    const counting: Middleware = (_ctx, next) => {
      calls += 1
      return next()
    }
    await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.drain([capturing()], { middleware: [counting] })
    await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.drain([capturing()], { middleware: [counting] })
    expect(calls).toBe(1)
  })
})

describe('a type', () => {
  const open = worlds(sqliteInMemory)

  test('is looked up as an own entry, never through a prototype', async () => {
    const world = open()
    const evil = defineJob({ type: 'constructor', payload: z.object({}) })
    const { id } = await world.chokaq.enqueue(evil, {})
    await world.drain([idle])
    expect(await world.state(id)).toBe('pending')
    let ran = false
    await world.drain([defineHandler(evil, { sideEffects: 'none', run: async () => void (ran = true) })])
    expect(ran).toBe(true)
  })
})
