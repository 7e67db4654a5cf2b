// A run of the whole system on virtual time: several workers, one database, and everything that can go wrong, decided by
// a seed. Then the faults stop, and what must have become of every job is checked.
import { createChokaQ, type ChokaQ } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { createFakeRuntime, type FakeRuntime, type SeededRandom } from 'chokaq/testing'
import { createWorker, type Worker } from 'chokaq/worker'
import type { JobRecord } from '../../../src/core/job.ts'
import type { StorageDriver } from '../../../src/core/storage.ts'
import { newJob } from '../../../src/testing/conformance/new-job.ts'
import { contracts, crashBudget, handlersOf, planOf, raw } from './handlers.ts'
import { History, storageOf } from './history.ts'
import { SimProcess } from './process.ts'

export interface Simulation {
  readonly seed: number
  readonly history: History
  readonly rows: readonly JobRecord[]
  readonly counters: ReadonlyMap<string, number>
  readonly deathCount: number
}

interface Running {
  readonly process: SimProcess
  readonly worker: Worker
}

export const limitedQueue = 'limited'
export const limit = 2
/** What a seed is about: much work and long stalls, deaths, or a bad connection. Each has some of the others. */
interface Mood {
  readonly jobsPerStep: number
  readonly killRate: number
  readonly freezeRate: number
  readonly faultRates: readonly number[]
  readonly maxWorkMs: number
  readonly isDeadly: boolean
}

const moods: readonly Mood[] = [
  { jobsPerStep: 8, killRate: 0.03, freezeRate: 0.3, faultRates: [0, 0.05], maxWorkMs: 4_000, isDeadly: false },
  { jobsPerStep: 4, killRate: 0.15, freezeRate: 0.05, faultRates: [0, 0.02], maxWorkMs: 1_500, isDeadly: true },
  { jobsPerStep: 4, killRate: 0.05, freezeRate: 0.1, faultRates: [0, 0.05, 0.3], maxWorkMs: 1_500, isDeadly: false },
]

const workerCount = 3
const stepCount = 30
const by = { actor: 'nemesis', note: '' }
const tailLimitMs = 30 * 60_000

export async function simulate(seed: number): Promise<Simulation> {
  return new Simulator(seed).run()
}

class Simulator {
  readonly #seed: number
  readonly #mood: Mood
  readonly #runtime: FakeRuntime
  readonly #chance: SeededRandom
  readonly #storage = sqlite(':memory:')
  readonly #driver: StorageDriver
  readonly #history: History
  readonly #producer: ChokaQ
  readonly #producerProcess: SimProcess
  readonly #running = new Set<Running>()
  readonly #ids: string[] = []
  #pid = 1
  #op = 0
  #deathCount = 0
  #faultRate = 0
  #isOver = false

  constructor(seed: number) {
    this.#seed = seed
    this.#runtime = createFakeRuntime({ seed })
    this.#chance = this.#runtime.chance
    this.#mood = this.#chance.pick(moods)
    this.#driver = this.#storage.open(this.#runtime)
    this.#history = new History(() => this.#runtime.clock.nowMs())
    this.#producerProcess = new SimProcess('producer', 1, this.#runtime, {
      death: () => undefined,
      freeze: () => undefined,
    })
    this.#producer = this.#clientOf(this.#producerProcess)
  }

  async run(): Promise<Simulation> {
    await this.#driver.inspector.setQueue({ name: limitedQueue, maxConcurrency: limit }, by)
    for (let i = 0; i < workerCount; i += 1) this.#boot()
    for (let step = 0; step < stepCount; step += 1) {
      this.#disturb()
      await this.#runtime.advance(this.#chance.int(50, 6_000))
    }
    await this.#tail()
    const simulation = {
      seed: this.#seed,
      history: this.#history,
      rows: await this.#rows(),
      counters: await this.#counters(),
      deathCount: this.#deathCount,
    }
    this.#isOver = true
    for (const { process } of this.#running) process.kill(false)
    await this.#driver.close()
    return simulation
  }

  // ---- the nemesis

  #disturb(): void {
    const chance = this.#chance
    const { jobsPerStep, killRate, freezeRate, faultRates } = this.#mood
    if (chance.chance(0.25)) this.#setFaultRate(chance.pick(faultRates))
    for (let i = chance.int(0, jobsPerStep); i > 0; i -= 1) void this.#enqueue()
    if (chance.chance(killRate)) this.#any()?.process.kill(chance.chance(0.6))
    if (chance.chance(freezeRate)) this.#freeze(chance.pick([2_000, 12_000, 24_000, 60_000, 90_000]))
    if (chance.chance(0.2)) void this.#cancel()
    if (chance.chance(0.1)) void this.#pause(chance.pick(['default', limitedQueue]), chance.int(1_000, 20_000))
  }

  #setFaultRate(rate: number): void {
    this.#faultRate = rate
    for (const { process } of this.#running) this.#connect(process)
    // The producer lives on: only its connection is bad.
    this.#producerProcess.faultRate = 0
  }

  #connect(process: SimProcess): void {
    process.faultRate = this.#faultRate
    if (this.#faultRate > 0) this.#history.add({ kind: 'bad-connection', process: process.name })
  }

  #any(): Running | undefined {
    const all = [...this.#running]
    return all.length === 0 ? undefined : this.#chance.pick(all)
  }

  #freeze(ms: number): void {
    const process = this.#any()?.process
    process?.freeze(ms)
  }

  async #enqueue(): Promise<void> {
    const chance = this.#chance
    this.#op += 1
    const op = this.#op
    const job = chance.pick(contracts)
    const { isDeadly, maxWorkMs } = this.#mood
    const key = `k${chance.int(1, 25)}`
    const payload = { op, key, plan: planOf(chance, isDeadly), workMs: chance.int(0, maxWorkMs) }
    const options = {
      queue: chance.pick(['default', 'default', limitedQueue]),
      priority: chance.int(-2, 2),
      delay: chance.chance(0.3) ? chance.int(1, 40_000) : 0,
    }
    if (job === raw && chance.chance(0.7)) {
      await this.#enqueueRaw(JSON.stringify(payload), options.queue)
      return
    }
    const repeats = chance.chance(0.15) ? 2 : 1
    const id = this.#runtime.newId()
    for (let i = 0; i < repeats; i += 1) {
      const answer = await this.#producer.enqueue(job, payload, { ...options, id })
      this.#history.add({ kind: 'answer', op, outcome: answer.outcome, id: answer.id })
      if (answer.outcome === 'enqueued') this.#ids.push(answer.id)
    }
  }

  async #enqueueRaw(payload: string, queue: string): Promise<void> {
    const row = newJob(this.#runtime, { type: raw.type, payload, queue })
    const [verdict] = await this.#driver.enqueue([row])
    if (verdict === undefined) return
    this.#history.add({ kind: 'enqueue', row, verdict })
    this.#ids.push(row.id)
  }

  async #cancel(): Promise<void> {
    if (this.#ids.length === 0) return
    const jobId = this.#chance.pick(this.#ids)
    const verdict = await this.#driver.inspector.cancel(jobId, by)
    this.#history.add({ kind: 'cancel', jobId, verdict: verdict.kind })
  }

  async #pause(queue: string, ms: number): Promise<void> {
    await this.#driver.inspector.setQueue({ name: queue, paused: true }, by)
    this.#history.add({ kind: 'pause', queue })
    await new Promise<void>((resolve) => this.#runtime.scheduler.after(ms, resolve))
    if (this.#isOver) return
    // Before the call: from here on a fetch may see it.
    this.#history.add({ kind: 'resume', queue })
    await this.#driver.inspector.setQueue({ name: queue, paused: false }, by)
  }

  // ---- processes

  #clientOf(process: SimProcess): ChokaQ {
    const storage = storageOf(this.#storage, this.#driver, process, this.#history)
    return createChokaQ({ storage, runtime: process.runtime })
  }

  #boot(): void {
    this.#pid += 1
    const name = `p${this.#pid}`
    const process = new SimProcess(name, this.#pid, this.#runtime, {
      death: (dead) => {
        this.#died(dead)
      },
      freeze: () => {
        this.#history.add({ kind: 'freeze', process: name })
      },
    })
    this.#history.add({ kind: 'boot', process: name })
    this.#connect(process)
    const worker = createWorker({
      chokaq: this.#clientOf(process),
      handlers: handlersOf(process, this.#history),
      queues: ['default', limitedQueue],
      concurrency: this.#chance.int(1, 4),
      crashBudget,
      abortGrace: '1s',
      name,
    })
    const running = { process, worker }
    this.#running.add(running)
    // A start that fails is what a supervisor sees: it starts another process.
    worker.start().catch(() => {
      process.kill(true)
    })
  }

  #died(process: SimProcess): void {
    this.#history.add({ kind: 'kill', process: process.name })
    this.#deathCount += 1
    for (const running of this.#running) if (running.process === process) this.#running.delete(running)
    if (this.#isOver) return
    this.#runtime.scheduler.after(this.#chance.int(500, 4_000), () => {
      if (!this.#isOver) this.#boot()
    })
  }

  // ---- the end

  /** No more faults. Everything must come to its end within a bounded time. */
  async #tail(): Promise<void> {
    this.#setFaultRate(0)
    for (const queue of ['default', limitedQueue]) {
      await this.#driver.inspector.setQueue({ name: queue, paused: false }, by)
      this.#history.add({ kind: 'resume', queue })
    }
    const isDone = async (): Promise<boolean> =>
      (await this.#driver.inspector.list({ pillar: 'hot', filter: {}, limit: 1, cursor: undefined })).jobs.length === 0
    const deadlineMs = this.#runtime.clock.monotonicMs() + tailLimitMs
    while (!(await isDone()) && this.#runtime.clock.monotonicMs() < deadlineMs) await this.#runtime.advance(2_000)
  }

  async #rows(): Promise<readonly JobRecord[]> {
    const rows: JobRecord[] = []
    for (const pillar of ['hot', 'archive', 'dlq'] as const) {
      let cursor: string | undefined
      do {
        const page = await this.#driver.inspector.list({ pillar, filter: {}, limit: 500, cursor })
        rows.push(...page.jobs)
        cursor = page.nextCursor
      } while (cursor !== undefined)
    }
    return rows
  }

  async #counters(): Promise<ReadonlyMap<string, number>> {
    const sums = new Map<string, number>()
    for (const { name, label, value } of await this.#driver.inspector.stats()) {
      for (const key of new Set([name, `${name} ${label}`])) sums.set(key, (sums.get(key) ?? 0) + value)
    }
    return sums
  }
}
