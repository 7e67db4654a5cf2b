// Who lives and who is dead: fences, rescues, outages, lost replies. Time is virtual, so half a minute is nothing.
import { describe, expect, test } from 'vitest'
import type { ChokaQError } from 'chokaq'
import { capture, capturing, resize, resizing, unguarded } from './contracts.ts'
import { sqliteInMemory } from './sqlite-storage.ts'
import { sharedStorages, storages } from './storages.ts'
import { ada, gate, worlds, type World } from './world.ts'

const beats = new Set(['heartbeat'])

/** Cuts these calls, for one client's workers as for the other's. */
function cut(world: World, calls: ReadonlySet<string>): void {
  world.fault = (call) => (calls.has(call) ? 'before' : 'none')
}

describe.each(storages)('a worker whose beats fail on $name', (kind) => {
  const open = worlds(kind)

  test('fences itself after 20 s: the signal aborts, and nothing it ends with is stored', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    let reason: ChokaQError | undefined
    const handler = resizing(
      (_p, ctx) =>
        new Promise((resolve) => {
          ctx.signal.addEventListener('abort', () => {
            reason = ctx.signal.reason as ChokaQError
            resolve('too late')
          })
        }),
    )
    const worker = await world.start([handler])
    await world.runtime.settle()
    cut(world, beats)
    await world.runtime.advance(19_000)
    expect(world.of('worker.fenced')).toEqual([])
    await world.runtime.advance(2_000)
    expect(world.of('worker.fenced')).toMatchObject([{ why: 'beats-failed', lostCount: 1 }])
    expect(reason?.code).toBe('CHOKAQ_LEASE_LOST')
    expect(await world.job(id)).toMatchObject({ state: 'processing', result: null })
    world.fault = () => 'none'
    await world.stop(worker)
  })

  test('comes back under a new id, and the job it lost runs again', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const first = gate<string>()
    const handler = resizing((_p, ctx) => (ctx.attempt === 1 ? first.promise : Promise.resolve('second')))
    const worker = await world.start([handler])
    await world.runtime.settle()
    const before = worker.id
    cut(world, beats)
    await world.runtime.advance(21_000)
    world.fault = () => 'none'
    expect(worker.id).not.toBe(before)
    await world.runtime.advance(50_000)
    expect(world.of('worker.declared_dead')).toMatchObject([{ workerId: before, how: 'silence' }])
    expect(await world.job(id)).toMatchObject({ state: 'completed', result: '"second"', attempt: 2 })
    // What the first run ends with at last changes nothing.
    first.open('first')
    await world.runtime.settle()
    expect(await world.job(id)).toMatchObject({ result: '"second"' })
    expect(await world.counter('jobs.completed')).toBe(1)
    await world.stop(worker)
  })

  test('may be stopped while it tries to come back', async () => {
    const world = open()
    const worker = await world.start([resizing(async () => 1)])
    world.fault = () => 'before'
    await world.runtime.advance(30_100)
    const startMs = world.runtime.clock.monotonicMs()
    await world.stop(worker)
    expect(worker.state).toBe('stopped')
    expect(world.runtime.clock.monotonicMs() - startMs, 'the wait for the next try is cut short').toBeLessThan(500)
    world.fault = () => 'none'
  })

  test('and an outage of ten minutes, too, is survived without a bogus fence after it', async () => {
    const world = open()
    const worker = await world.start([resizing(async () => 1)])
    world.fault = () => 'before'
    await world.runtime.advance(600_000)
    expect(world.of('storage.failed').length, 'ten minutes of errors are no flood').toBeLessThan(3_000)
    world.fault = () => 'none'
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    await world.runtime.advance(5_000)
    expect(await world.state(id)).toBe('completed')
    const fences = world.of('worker.fenced').length
    await world.runtime.advance(60_000)
    expect(world.of('worker.fenced').length).toBe(fences)
    await world.stop(worker)
  })
})

describe.each(storages)('a worker declared dead while it lives on $name', (kind) => {
  const open = worlds(kind)

  test('cannot settle under its old lease, stops what it runs, and registers anew', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const first = gate<{ chargeId: string }>()
    const handler = capturing((_p, ctx) =>
      ctx.attempt === 1 ? first.promise : Promise.resolve({ chargeId: 'second' }),
    )
    const worker = await world.start([handler])
    await world.runtime.settle()
    const before = worker.id
    await world.driver.rescue({ deadWorkerIds: [before], provenDeadIds: [], limit: 10 })
    first.open({ chargeId: 'first' })
    await world.runtime.settle()
    expect(world.of('job.lease_lost')).toMatchObject([{ jobId: id, at: 'settle', attempt: 1 }])
    await world.runtime.advance(6_000)
    expect(world.of('worker.fenced')).toMatchObject([{ workerId: before, why: 'declared-dead' }])
    expect(worker.id).not.toBe(before)
    await world.runtime.advance(6_000)
    expect(await world.job(id)).toMatchObject({ state: 'completed', result: '{"chargeId":"second"}' })
    await world.stop(worker)
  })
})

describe.each(sharedStorages)('two workers on $name', (kind) => {
  const open = worlds(kind)

  test('one dies: the other takes its jobs back after 30 s of silence', async () => {
    const world = open()
    const go = gate()
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    let runs = 0
    const handler = capturing(async () => {
      runs += 1
      if (runs === 1) await go.promise
      return { chargeId: String(runs) }
    })
    const other = world.client()
    await world.start([handler])
    await world.runtime.settle()
    const survivor = await world.start([handler], { chokaq: other })
    const lost = world.of('worker.started')[0]?.workerId
    // The first process is paused as a whole: none of its calls gets through any more.
    const frozen = world.driver
    frozen.heartbeat = () => new Promise(() => undefined)
    frozen.settle = () => new Promise(() => undefined)
    frozen.registerWorker = () => new Promise(() => undefined)
    frozen.disown = () => new Promise(() => undefined)
    await world.runtime.advance(29_000)
    expect(await world.state(id)).toBe('processing')
    await world.runtime.advance(21_000)
    expect(world.of('worker.declared_dead')).toMatchObject([{ workerId: lost, by: survivor.id, how: 'silence' }])
    expect(await other.jobs.get(id)).toMatchObject({ state: 'completed', attempt: 2 })
    go.open()
  })

  test('one process is gone: the other takes its jobs back with the next sweep', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await world.driver.registerWorker({
      id: 'gone',
      name: 'gone',
      identity: { ...world.runtime.processes.self(), pid: 4242 },
      queues: [],
      types: [],
      concurrency: 1,
    })
    const policy = { type: capture.type, keyed: true, fastStart: true, whenInterrupted: 'resume' } as const
    const budgets = { crashBudget: 2, fetchCrashBudget: 10, retryLifetimeMs: 1e9, timeoutMs: 1e6, markerLifeMs: 1e9 }
    await world.driver.fetch({ workerId: 'gone', queue: 'default', limit: 1, policies: [{ ...policy, ...budgets }] })
    world.runtime.processes.markGone({ ...world.runtime.processes.self(), pid: 4242 })
    const worker = await world.start([capturing()])
    await world.runtime.advance(8_000)
    expect(world.of('worker.declared_dead')).toMatchObject([{ workerId: 'gone', how: 'process-gone' }])
    expect(world.of('job.rescued')).toMatchObject([{ jobId: id, went: 'pending', crashed: true, workerId: 'gone' }])
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 2 })
    await world.stop(worker)
  })

  test('a storage outage of 40 s for both kills neither falsely', async () => {
    const world = open()
    const workers = [
      await world.start([resizing(async () => 1)]),
      await world.start([resizing(async () => 1)], { chokaq: world.client() }),
    ]
    await world.runtime.advance(20_000)
    world.fault = () => 'before'
    await world.runtime.advance(40_000)
    world.fault = () => 'none'
    await world.runtime.advance(20_000)
    expect(world.of('worker.declared_dead').filter(({ how }) => how === 'process-gone')).toEqual([])
    // Both fenced themselves and came back under new ids; only the old rows, which nobody uses, fall silent later.
    const ids = workers.map(({ id }) => id)
    expect(world.of('worker.declared_dead').filter(({ workerId }) => ids.includes(workerId))).toEqual([])
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    await world.runtime.advance(5_000)
    expect(await world.state(id)).toBe('completed')
    for (const worker of workers) await world.stop(worker)
  })

  test('an outage of 15 s is survived by the incarnation itself, and its running job with it', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const go = gate()
    const worker = await world.start([resizing(() => go.promise)])
    await world.runtime.settle()
    const before = worker.id
    world.fault = () => 'before'
    await world.runtime.advance(5_000)
    go.open()
    await world.runtime.advance(10_000)
    expect(await world.state(id).catch(() => 'unknown')).toBe('unknown')
    world.fault = () => 'none'
    await world.runtime.advance(5_000)
    expect(worker.id).toBe(before)
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 1 })
    await world.stop(worker)
  })

  test('a wall clock that jumps by an hour, to either side, kills nobody and starts nothing early', async () => {
    const world = open()
    const worker = await world.start([resizing(async () => 1)])
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' }, { delay: '2h' })
    await world.runtime.advance(10_000)
    world.runtime.stepWallClock(3_600_000)
    await world.runtime.advance(60_000)
    world.runtime.stepWallClock(-7_200_000)
    await world.runtime.advance(60_000)
    expect(world.of('worker.fenced')).toEqual([])
    expect(world.of('worker.declared_dead')).toEqual([])
    expect(await world.state(id)).toBe('scheduled')
    await world.stop(worker)
  })
})

describe.each(storages)('lost replies on $name', (kind) => {
  const open = worlds(kind)

  test('of a fetch: the worker disowns what it does not know, at no cost', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    let losses = 1
    world.fault = (call) => (call === 'fetch' && (losses -= 1) >= 0 ? 'after' : 'none')
    const worker = await world.start([resizing(async () => 1)])
    await world.runtime.advance(1_000)
    expect(await world.state(id)).toBe('processing')
    await world.runtime.advance(20_000)
    expect(world.of('worker.disowned')).toMatchObject([{ disownedCount: 1 }])
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 1, crashCount: 0, fetchCrashCount: 0 })
    await world.stop(worker)
  })

  test('of a start: it is recognised, and the handler runs once', async () => {
    const world = open()
    let losses = 2
    world.fault = (call) => (call === 'start' && (losses -= 1) >= 0 ? 'after' : 'none')
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    let runs = 0
    const handler = unguarded(async () => {
      runs += 1
      return { chargeId: 'c' }
    })
    const worker = await world.start([handler])
    await world.runtime.advance(2_000)
    expect(losses).toBeLessThan(0)
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 1 })
    expect(runs).toBe(1)
    await world.stop(worker)
  })

  test('of a settle: it is recognised, reported once and counted once', async () => {
    const world = open()
    let losses = 2
    world.fault = (call) => (call === 'settle' && (losses -= 1) >= 0 ? 'after' : 'none')
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    const worker = await world.start([capturing()])
    await world.runtime.advance(2_000)
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 1 })
    expect(world.of('job.completed')).toMatchObject([{ jobId: id, repeated: true }])
    expect(await world.counter('jobs.completed')).toBe(1)
    await world.stop(worker)
  })

  test('an outcome is offered through an outage until it is stored', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    cut(world, new Set(['settle']))
    const worker = await world.start([capturing()])
    await world.runtime.advance(12_000)
    expect(await world.state(id)).toBe('processing')
    world.fault = () => 'none'
    await world.runtime.advance(2_000)
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 1 })
    await world.stop(worker)
  })

  test('a storage that hangs is given up after the statement deadline and asked again', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    let hangs = 1
    world.fault = (call) => (call === 'settle' && (hangs -= 1) >= 0 ? 'hang-after' : 'none')
    const worker = await world.start([capturing()])
    await world.runtime.advance(6_000)
    expect(await world.job(id)).toMatchObject({ state: 'completed', attempt: 1 })
    expect(world.of('storage.failed')).toMatchObject([{ during: 'settle' }])
    await world.stop(worker)
  })
})

describe('budgets', () => {
  const open = worlds(sqliteInMemory)

  /** Lets the worker die with its job, `times` times, as the survivors see it. */
  async function die(world: World, id: string, times: number, make: () => ReturnType<typeof resizing>): Promise<void> {
    for (let death = 0; death < times; death += 1) {
      const worker = await world.start([make()])
      await world.runtime.settle()
      if ((await world.state(id)) !== 'processing') return
      const { workerId } = await world.job(id)
      const rescued = await world.driver.rescue({ deadWorkerIds: [workerId ?? ''], provenDeadIds: [], limit: 10 })
      for (const job of rescued) expect(job).toMatchObject({ jobId: id, crashed: true })
      await world.stop(worker, { force: true })
    }
  }

  test('a job that kills its worker every time ends in the DLQ as Interrupted', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'poison' })
    await die(world, id, 10, () => resizing(() => gate<never>().promise))
    const job = await world.job(id)
    expect(job).toMatchObject({ state: 'dead', reason: 'Interrupted', failureCount: 0 })
    // The first start was the fetch's own, which proves nothing and charges nothing; then the budget of two.
    expect([job.crashCount, job.attempt]).toEqual([3, 4])
  })

  test('a review handler is not run again after a crash', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    await die(world, id, 1, () => unguarded(() => gate<never>().promise))
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'Interrupted', inDoubt: true, attempt: 1 })
  })

  test('a cancel asked for before the death is settled by the rescue', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(resize, { id: 'a' })
    const worker = await world.start([resizing(() => gate<never>().promise)])
    await world.runtime.settle()
    await world.chokaq.jobs.cancel(id, ada)
    await world.driver.rescue({ deadWorkerIds: [worker.id], provenDeadIds: [], limit: 10 })
    expect(await world.state(id)).toBe('cancelled')
  })
})

describe('an outcome that the storage refuses for good', () => {
  const open = worlds(sqliteInMemory)

  test('strands the job: it is not given back as if its handler had never run', async () => {
    const world = open()
    const { id } = await world.chokaq.enqueue(capture, { paymentId: 'p1' })
    let runs = 0
    const handler = unguarded(async () => {
      runs += 1
      return { chargeId: 'c' }
    })
    world.driver.settle = () => Promise.reject(new RangeError('a bug'))
    const worker = await world.start([handler])
    await world.runtime.advance(60_000)
    expect(await world.job(id)).toMatchObject({ state: 'processing', attempt: 1 })
    expect(runs).toBe(1)
    await world.stop(worker)
    // Its worker keeps its row; when the process is gone, the rescue parks the job for a person.
    const [row] = await world.chokaq.insight.workers()
    await world.driver.rescue({ deadWorkerIds: [row?.id ?? ''], provenDeadIds: [], limit: 10 })
    expect(await world.job(id)).toMatchObject({ state: 'dead', reason: 'Interrupted', inDoubt: true })
  })
})
