/** What is measured, line by line. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ChokaQ } from 'chokaq'
import { BareLoop } from './bare-loop.ts'
import { drainBare } from './bare-postgres.ts'
import { drain, fill, open, payload, payloadText, plainJob, startListener, type Variant } from './engine.ts'
import { compared, inTurn, nowMs, percentile, rateOf, withDatabase, type Line } from './measure.ts'

const batchCount = 500

export interface Sizes {
  readonly rounds: number
  readonly singleCount: number
  readonly drainCount: number
  readonly scaleCount: number
  readonly latencyCount: number
}

async function bareTables(path: string): Promise<BareLoop> {
  const chokaq = open(path)
  await chokaq.ready()
  await chokaq.close()
  return new BareLoop(path)
}

const bareEnqueue = (count: number): Promise<number> =>
  withDatabase(async (path) => {
    const bare = await bareTables(path)
    const rate = await rateOf(count, () => {
      bare.enqueueEach(count, payloadText)
    })
    bare.close()
    return rate
  })

const bareBulk = (count: number): Promise<number> =>
  withDatabase(async (path) => {
    const bare = await bareTables(path)
    const rate = await rateOf(count, () => {
      for (let from = 0; from < count; from += 1_000) bare.enqueueMany(1_000, payloadText)
    })
    bare.close()
    return rate
  })

/** Rates of the bare fetch and settle loop, over a fresh file or one with an archive. */
const bareDrain = (count: number): Promise<number> =>
  withDatabase(async (path) => {
    const bare = await bareTables(path)
    bare.enqueueMany(count, payloadText)
    const rate = await rateOf(count, () => bare.drain(batchCount))
    bare.close()
    return rate
  })

const engineDrain = (variant: Variant, count: number, archivedCount = 0): Promise<number> =>
  withDatabase(async (path) => {
    if (archivedCount > 0) {
      const bare = await bareTables(path)
      bare.fill('jobs_archive', archivedCount, payloadText)
      bare.close()
    }
    const chokaq = open(path)
    await fill(chokaq, variant, count)
    const rate = await rateOf(count, () => drain(chokaq, variant, count))
    await chokaq.close()
    return rate
  })

export async function enqueueLines({ rounds, singleCount, drainCount }: Sizes): Promise<readonly Line[]> {
  const single = (): Promise<number> =>
    withDatabase(async (path) => {
      const chokaq = open(path)
      await chokaq.ready()
      const rate = await rateOf(singleCount, async () => {
        for (let i = 0; i < singleCount; i += 1) await chokaq.enqueue(plainJob, payload)
      })
      await chokaq.close()
      return rate
    })
  const bulk = (): Promise<number> =>
    withDatabase(async (path) => {
      const chokaq = open(path)
      await chokaq.ready()
      const rate = await rateOf(drainCount, () => fill(chokaq, 'unkeyed', drainCount))
      await chokaq.close()
      return rate
    })
  const [own = 0, bare = 0] = await inTurn(rounds, [single, () => bareEnqueue(singleCount)])
  const [ownBulk = 0, bareOfBulk = 0] = await inTurn(rounds, [bulk, () => bareBulk(drainCount)])
  return [
    compared('single durable enqueue, one after the other', [own, bare], 'the bare insert loop', 0.7),
    compared('bulk enqueue, 1,000 a call', [ownBulk, bareOfBulk], 'the bare insert, 1,000 a commit'),
  ]
}

export async function drainLines({ rounds, drainCount }: Sizes): Promise<readonly Line[]> {
  const [unkeyed = 0, keyed = 0, kept = 0, effect = 0, bare = 0] = await inTurn(rounds, [
    () => engineDrain('unkeyed', drainCount),
    () => engineDrain('keyed', drainCount),
    () => engineDrain('keep: 0', drainCount),
    () => engineDrain('one effect', drainCount),
    () => bareDrain(drainCount),
  ])
  return [
    compared('drain of no-op jobs, unkeyed', [unkeyed, bare], 'the bare fetch and settle loop', 0.3),
    compared('drain of no-op jobs, keyed', [keyed, bare], 'the bare fetch and settle loop', 0.2),
    compared('drain of no-op jobs, keep: 0', [kept, bare], 'the bare fetch and settle loop'),
    compared('drain with one effect each', [effect, keyed], 'the keyed drain', 0.4),
  ]
}

export async function archiveLine({ rounds, drainCount, scaleCount }: Sizes): Promise<readonly Line[]> {
  const [full = 0, none = 0] = await inTurn(rounds, [
    () => engineDrain('unkeyed', drainCount, scaleCount),
    () => engineDrain('unkeyed', drainCount),
  ])
  return [compared(`drain with ${scaleCount.toLocaleString('en')} archived`, [full, none], 'drain with none', 0.9)]
}

/** Fetch cost and memory against the number of pending rows. */
export async function scaleLines({ scaleCount }: Sizes): Promise<readonly Line[]> {
  const costOf = (pendingCount: number): Promise<{ readonly ms: number; readonly rssMb: number }> =>
    withDatabase(async (path) => {
      const bare = await bareTables(path)
      bare.fill('jobs_hot', pendingCount, payloadText)
      bare.close()
      global.gc?.()
      const before = process.memoryUsage().rss
      const chokaq = open(path)
      const taken = 800
      const startedMs = nowMs()
      await drain(chokaq, 'unkeyed', taken, 50)
      const ms = nowMs() - startedMs
      global.gc?.()
      const rssMb = (process.memoryUsage().rss - before) / 1e6
      await chokaq.close()
      return { ms, rssMb }
    })
  await costOf(1_000)
  const few: number[] = []
  const many: number[] = []
  let rssMb = 0
  for (let round = 0; round < 3; round += 1) {
    few.push((await costOf(1_000)).ms)
    const large = await costOf(scaleCount)
    many.push(large.ms)
    rssMb = Math.max(rssMb, large.rssMb)
  }
  const ratio = percentile(many, 0.5) / percentile(few, 0.5)
  const pending = scaleCount.toLocaleString('en')
  return [
    {
      name: `800 jobs fetched and settled with ${pending} pending`,
      value: percentile(many, 0.5),
      unit: 'ms',
      ratio,
      against: 'with 1,000 pending',
      target: '<= 1.25 of it',
      met: ratio <= 1.25,
    },
    { name: `memory for ${pending} pending`, value: rssMb, unit: 'MB', target: '<= 30 MB', met: rssMb <= 30 },
  ]
}

async function latencies(count: number, once: () => Promise<number>): Promise<readonly number[]> {
  const all: number[] = []
  for (let i = 0; i < count; i += 1) {
    all.push(await once())
    // Idle again, at no fixed phase of any poll.
    await wait(20 + (i % 17))
  }
  return all
}

function latencyLines(name: string, all: readonly number[], atMostMs: number): readonly Line[] {
  const p50 = percentile(all, 0.5)
  return [
    { name: `${name}, p50`, value: p50, unit: 'ms', target: `<= ${atMostMs} ms`, met: p50 <= atMostMs },
    { name: `${name}, p99`, value: percentile(all, 0.99), unit: 'ms' },
  ]
}

export function oneProcessLatency({ latencyCount }: Sizes): Promise<readonly Line[]> {
  return withDatabase(async (path) => {
    const chokaq = open(path)
    let started: (atNs: bigint) => void = () => undefined
    const worker = await startListener(chokaq, (atNs) => {
      started(atNs)
    })
    const all = await latencies(latencyCount, async () => {
      const start = new Promise<bigint>((resolve) => (started = resolve))
      const from = process.hrtime.bigint()
      await chokaq.enqueue(plainJob, payload)
      return Number((await start) - from) / 1e6
    })
    await worker.stop()
    await chokaq.close()
    return latencyLines('idle latency, enqueue to handler start, one process', all, 2)
  })
}

async function answer(child: ChildProcess, kind: string): Promise<Record<string, unknown>> {
  for (;;) {
    const [message] = (await once(child, 'message')) as [Record<string, unknown>]
    if (message['kind'] === kind) return message
  }
}

export function twoProcessLatency({ latencyCount }: Sizes): Promise<readonly Line[]> {
  return withDatabase(async (path) => {
    const chokaq = open(path)
    await chokaq.ready()
    const child = fork(fileURLToPath(new URL('latency-child.ts', import.meta.url)), [path])
    await answer(child, 'ready')
    const all = await latencies(latencyCount, async () => {
      const started = answer(child, 'started')
      const from = process.hrtime.bigint()
      await chokaq.enqueue(plainJob, payload)
      return Number(BigInt(String((await started)['at'])) - from) / 1e6
    })
    const idleMs = 8_000
    const cpu = async (): Promise<number> => {
      const told = answer(child, 'cpu')
      child.send({ kind: 'cpu' })
      return Number((await told)['microseconds'])
    }
    await wait(2_000)
    const before = await cpu()
    await wait(idleMs)
    const idlePercent = ((await cpu()) - before) / 1_000 / idleMs / 0.01
    const gone = once(child, 'exit')
    child.send({ kind: 'stop' })
    await gone
    await chokaq.close()
    const idle = {
      name: 'idle CPU of that worker',
      value: idlePercent,
      unit: '%',
      target: '<= 1 %',
      met: idlePercent <= 1,
    }
    return [...latencyLines('idle latency, enqueue to handler start, two processes', all, 60), idle]
  })
}

/** On a PostgreSQL server, each run in a schema of its own. */
export async function postgresLines(url: string, { rounds, drainCount }: Sizes): Promise<readonly Line[]> {
  let run = 0
  const inSchema = async (variant: Variant, work: (chokaq: ChokaQ, schema: string) => Promise<unknown>) => {
    const schema = `bench ${process.pid} ${(run += 1)}`
    const chokaq = open(url, schema)
    await fill(chokaq, variant, drainCount)
    const rate = await rateOf(drainCount, () => work(chokaq, schema))
    await chokaq.close()
    return rate
  }
  const drained = (variant: Variant) => inSchema(variant, (chokaq) => drain(chokaq, variant, drainCount))
  const bare = (variant: Variant) =>
    inSchema(variant, async (_, schema) => {
      const done = await drainBare(url, schema, batchCount)
      if (done !== drainCount) throw new Error(`the bare loop took ${done} of ${drainCount} jobs`)
    })
  const [plain = 0, barePlain = 0, keyed = 0, bareKeyed = 0, effect = 0] = await inTurn(rounds, [
    () => drained('unkeyed'),
    () => bare('unkeyed'),
    () => drained('keyed'),
    () => bare('keyed'),
    () => drained('one effect'),
  ])
  return [
    compared('PostgreSQL: drain of no-op jobs, unkeyed', [plain, barePlain], 'the bare loop', 0.6),
    compared('PostgreSQL: drain of no-op jobs, keyed', [keyed, bareKeyed], 'the bare loop of keyed jobs', 0.6),
    compared('PostgreSQL: drain with one effect each', [effect, keyed], 'the keyed drain', 0.4),
  ]
}
