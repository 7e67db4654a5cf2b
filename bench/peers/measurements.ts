/** One measurement of one contender: everything that is timed. Runs in a process of its own, on an empty database. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { contenderOf } from './contender-by-name.ts'
import type { Contender, ContenderName, Place, Variant } from './contender.ts'
import { cpuSeconds } from './servers.ts'

export interface Sizes {
  readonly jobCount: number
  readonly singleCount: number
  readonly latencyCount: number
  readonly idleSeconds: number
  readonly snapshotMinutes: number
  readonly snapshotJobCount: number
}

export type MeasurementName = 'throughput' | 'two workers' | 'latency' | 'snapshot'

export interface Assignment extends Place {
  readonly measurement: MeasurementName
  readonly contender: ContenderName
  readonly serverPids: { readonly postgres: number; readonly redis: number }
  readonly sizes: Sizes
}

/** Figures by the name of their line. */
export type Figures = Readonly<Record<string, number>>

const producers = 50

function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

async function rateOf(count: number, work: () => Promise<void>): Promise<number> {
  const startedMs = nowMs()
  await work()
  return count / ((nowMs() - startedMs) / 1_000)
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** From the start of a worker to the call of the handler for the last job. */
async function drainRate(contender: Contender, count: number): Promise<number> {
  let left = count
  let finish: () => void = () => undefined
  const finished = new Promise<void>((resolve) => (finish = resolve))
  const rate = await rateOf(count, async () => {
    await contender.work((jobs) => {
      left -= jobs
      if (left <= 0) finish()
    })
    await finished
  })
  return rate
}

async function mustBeEmpty(contender: Contender): Promise<void> {
  const left = await contender.leftCount()
  if (left !== 0) throw new TypeError(`${left} jobs are left after the drain`)
}

function serverSeconds({ contender, serverPids }: Assignment): number {
  return cpuSeconds(contender === 'bullmq on redis' ? serverPids.redis : serverPids.postgres)
}

const drainLines: Readonly<Record<Variant, string>> = {
  plain: 'drain',
  'keep 0': 'drain, keep 0',
  keyed: 'drain, keyed',
}

async function singleRate(contender: Contender, count: number): Promise<number> {
  let left = count
  const produce = async (): Promise<void> => {
    while ((left -= 1) >= 0) await contender.enqueueOne()
  }
  return rateOf(count, async () => void (await Promise.all(Array.from({ length: producers }, produce))))
}

export async function throughput(assignment: Assignment): Promise<Figures> {
  const { sizes, variant } = assignment
  const contender = await contenderOf(assignment.contender, assignment)
  await contender.open()
  // The first call opens connections.
  await contender.enqueueOne()
  const bulk = await rateOf(sizes.jobCount, () => contender.enqueueMany(sizes.jobCount))
  const figures: Record<string, number> = variant === 'plain' ? { 'bulk enqueue': bulk } : {}
  const count = sizes.jobCount + 1
  const serverBefore = serverSeconds(assignment)
  const clientBefore = process.cpuUsage()
  const line = drainLines[variant]
  figures[line] = await drainRate(contender, count)
  const { user, system } = process.cpuUsage(clientBefore)
  await contender.rest()
  figures[`server CPU per job: ${line}`] = ((serverSeconds(assignment) - serverBefore) * 1e6) / count
  figures[`client CPU per job: ${line}`] = (user + system) / count
  await mustBeEmpty(contender)
  // Last, so that every drain is one of the same jobs.
  if (variant === 'plain') figures['50 single enqueues'] = await singleRate(contender, sizes.singleCount)
  await contender.close()
  return figures
}

// ---- workers in processes of their own

interface Message {
  readonly kind: string
  readonly [field: string]: unknown
}

class WorkerProcess {
  readonly #child: ChildProcess

  private constructor(child: ChildProcess) {
    this.#child = child
  }

  static async start(assignment: Assignment): Promise<WorkerProcess> {
    const file = fileURLToPath(new URL('worker-process.ts', import.meta.url))
    const worker = new WorkerProcess(fork(file, [JSON.stringify(assignment)]))
    await worker.told('ready')
    return worker
  }

  on(listener: (message: Message) => void): void {
    this.#child.on('message', listener)
  }

  say(kind: string): void {
    this.#child.send({ kind })
  }

  told(kind: string): Promise<Message> {
    return new Promise((resolve, reject) => {
      const ended = (): void => reject(new TypeError(`a worker process ended before it said ${kind}`))
      const listen = (message: unknown): void => {
        if ((message as Message).kind !== kind) return
        this.#child.off('message', listen)
        this.#child.off('exit', ended)
        resolve(message as Message)
      }
      this.#child.on('message', listen)
      this.#child.once('exit', ended)
    })
  }

  async end(): Promise<void> {
    const gone = once(this.#child, 'exit')
    this.say('end')
    await gone
  }
}

export async function twoWorkers(assignment: Assignment): Promise<Figures> {
  const { jobCount } = assignment.sizes
  const contender = await contenderOf(assignment.contender, assignment)
  await contender.open()
  await contender.enqueueMany(jobCount)
  const workers = [await WorkerProcess.start(assignment), await WorkerProcess.start(assignment)]
  let left = jobCount
  let finish: () => void = () => undefined
  const finished = new Promise<void>((resolve) => (finish = resolve))
  for (const worker of workers) {
    worker.on((message) => {
      if (message.kind !== 'ran') return
      left -= Number(message['count'])
      if (left <= 0) finish()
    })
  }
  const rate = await rateOf(jobCount, async () => {
    for (const worker of workers) worker.say('work')
    await finished
  })
  for (const worker of workers) await worker.end()
  await mustBeEmpty(contender)
  await contender.close()
  return { 'drain, two worker processes': rate }
}

/** A worker in another process that has nothing to do, and one job at a time. Both read the machine's monotonic clock. */
export async function latency(assignment: Assignment): Promise<Figures> {
  const { latencyCount, idleSeconds } = assignment.sizes
  const contender = await contenderOf(assignment.contender, assignment)
  await contender.open()
  const worker = await WorkerProcess.start(assignment)
  worker.say('work')
  await worker.told('working')
  /** What a worker does once after its start is over by then. */
  const settledMs = 8_000
  const all: number[] = []
  for (let i = -10; i < latencyCount; i += 1) {
    const started = worker.told('started')
    const from = process.hrtime.bigint()
    await contender.enqueueOne()
    const ms = Number(BigInt(String((await started)['at'])) - from) / 1e6
    if (i >= 0) all.push(ms)
    // Idle again, at no fixed phase of any poll.
    await wait(20 + (i % 17))
  }
  await wait(settledMs)
  worker.say('statements')
  const before = Number((await worker.told('statements'))['count'])
  await wait(idleSeconds * 1_000)
  worker.say('statements')
  const statements = Number((await worker.told('statements'))['count']) - before
  await worker.end()
  await contender.close()
  return {
    'idle latency p50': percentile(all, 0.5),
    'idle latency p95': percentile(all, 0.95),
    ...(assignment.contender === 'bullmq on redis' ? {} : { 'statements of an idle worker': statements / idleSeconds }),
  }
}

/**
 * Fills and drains in turns while somebody else's transaction holds a snapshot, as a report or a backup does: the server
 * may not remove a row that died since. Every worker is started anew, with nothing remembered.
 */
export async function snapshot(assignment: Assignment): Promise<Figures> {
  const { snapshotMinutes, snapshotJobCount } = assignment.sizes
  const contender = await contenderOf(assignment.contender, assignment)
  await contender.open()
  const round = async (): Promise<number> => {
    await contender.enqueueMany(snapshotJobCount)
    const rate = await drainRate(contender, snapshotJobCount)
    await contender.rest()
    return rate
  }
  const before: number[] = []
  for (let i = 0; i < 4; i += 1) before.push(await round())
  const holder = new pg.Client(assignment.url)
  await holder.connect()
  await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class')
  const untilMs = nowMs() + snapshotMinutes * 60_000
  const held: number[] = []
  while (nowMs() < untilMs || held.length < 3) held.push(await round())
  await holder.query('COMMIT')
  await holder.end()
  await mustBeEmpty(contender)
  await contender.close()
  // The first round compiles and connects.
  const start = percentile(before.slice(1), 0.5)
  const end = percentile(held.slice(-3), 0.5)
  return {
    'drain before a snapshot is held': start,
    'drain with a snapshot held': end,
    'drain kept with a snapshot held': end / start,
    'jobs run with a snapshot held': held.length * snapshotJobCount,
  }
}
