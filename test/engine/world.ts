// One fresh storage, its client and its workers, on virtual time, with everything they say. Closing it checks that no
// timer is left behind.
import { createChokaQ, type ChokaQ, type ChokaQEvent, type ClientOptions, type EventName, type JobRecord } from 'chokaq'
import { createFakeRuntime, drain, type FakeRuntime } from 'chokaq/testing'
import { createWorker, type CreateWorkerOptions, type Handler, type Worker } from 'chokaq/worker'
import { afterEach, expect } from 'vitest'
import { partsOf } from '../../src/engine/parts.ts'
import { faultyStorage, type FaultPlan } from '../../src/testing/faulty-storage.ts'
import type { StorageDriver } from '../../src/core/storage.ts'
import type { OpenedStorage, StorageCase } from './storage-case.ts'

export type EventOf<N extends EventName> = Extract<ChokaQEvent, { name: N }>

export interface WorldOptions extends ClientOptions {
  readonly seed?: number
}

export interface OwnProcess {
  readonly chokaq: ChokaQ
  /** `isSeen`: others can tell that its process is gone; else only its silence counts. */
  die(how: { readonly isSeen: boolean }): void
}

export const ada = { actor: 'ada', note: 'asked for by the customer' }

export class World {
  readonly runtime: FakeRuntime
  readonly events: ChokaQEvent[] = []
  readonly chokaq: ChokaQ
  /** What becomes of each storage call of `chokaq` and its workers; a test replaces it. */
  fault: FaultPlan = () => 'none'
  readonly #opened: OpenedStorage
  readonly #clients: ChokaQ[] = []
  readonly #workers: Worker[] = []
  #hasDied = false

  constructor(kind: StorageCase, { seed, ...options }: WorldOptions) {
    const { yieldToHost } = kind
    this.runtime = createFakeRuntime({
      ...(seed === undefined ? {} : { seed }),
      ...(yieldToHost === undefined ? {} : { yieldToHost }),
    })
    this.#opened = kind.open()
    this.chokaq = this.client(options)
  }

  get path(): string {
    return this.#opened.path
  }

  get driver(): StorageDriver {
    return partsOf(this.chokaq).driver
  }

  /** Another connection to the same data. */
  client(options: ClientOptions = {}): ChokaQ {
    const storage = faultyStorage(this.#opened.storage, (call) => this.fault(call))
    const chokaq = createChokaQ({
      ...options,
      storage,
      runtime: this.runtime,
      onEvent: (event) => void this.events.push(event),
    })
    this.#clients.push(chokaq)
    return chokaq
  }

  /** A client in a process of its own. `die` cuts it off in the middle of whatever it does. */
  process(pid: number): OwnProcess {
    const runtime = this.runtime.forProcess({ pid, startTime: String(pid) })
    let isDead = false
    const storage = faultyStorage(this.#opened.storage, (call) => (isDead && call !== 'close' ? 'hang' : 'none'))
    const chokaq = createChokaQ({ storage, runtime, onEvent: (event) => void this.events.push(event) })
    this.#clients.push(chokaq)
    return {
      chokaq,
      die: ({ isSeen }) => {
        isDead = true
        this.#hasDied = true
        if (isSeen) this.runtime.processes.markGone(runtime.processes.self())
      },
    }
  }

  worker(handlers: readonly Handler[], options: Partial<CreateWorkerOptions> = {}): Worker {
    const worker = createWorker({ chokaq: this.chokaq, handlers, ...options })
    this.#workers.push(worker)
    return worker
  }

  /** Stopped with this world. */
  keep(worker: Worker): void {
    this.#workers.push(worker)
  }

  /** A worker that runs. */
  async start(handlers: readonly Handler[], options: Partial<CreateWorkerOptions> = {}): Promise<Worker> {
    const worker = this.worker(handlers, options)
    await this.runtime.complete(worker.start())
    return worker
  }

  /** Runs everything there is, retries and delays included, and gives the number of settled attempts. */
  drain(handlers: readonly Handler[], options: Partial<CreateWorkerOptions> = {}): Promise<number> {
    return drain(this.worker(handlers, options), { runtime: this.runtime })
  }

  stop(worker: Worker, options: { force?: boolean } = {}): Promise<void> {
    return this.runtime.complete(worker.stop(options))
  }

  of<N extends EventName>(name: N): EventOf<N>[] {
    return this.events.filter((event): event is EventOf<N> => event.name === name)
  }

  async job(id: string): Promise<JobRecord> {
    const record = await this.chokaq.jobs.get(id)
    if (record === undefined) throw new Error(`job ${id} is nowhere`)
    return record
  }

  /** 'pending', 'completed', 'dead', …, or 'nowhere'. */
  async state(id: string): Promise<string> {
    return (await this.chokaq.jobs.get(id))?.state ?? 'nowhere'
  }

  /** The sum of a counter over queues and types, of one label where it is given. */
  async counter(name: string, label?: string): Promise<number> {
    const rows = await this.chokaq.insight.stats()
    return rows
      .filter((row) => row.name === name && (label === undefined || row.label === label))
      .reduce((sum, row) => sum + row.value, 0)
  }

  async close(): Promise<void> {
    this.fault = () => 'none'
    for (const worker of this.#workers) await this.stop(worker, { force: true })
    for (const client of this.#clients) await client.close()
    // Calls of a dead process never come back; their deadlines do.
    if (this.#hasDied) await this.runtime.advance(60_000)
    this.#opened.remove()
    expect(this.runtime.pendingTimerCount(), 'no timer is left').toBe(0)
  }
}

/** Worlds of one storage; each is closed after its test. */
export function worlds(kind: StorageCase): (options?: WorldOptions) => World {
  let opened: World[] = []
  afterEach(async () => {
    const all = opened
    opened = []
    for (const world of all) await world.close()
  })
  return (options = {}) => {
    const world = new World(kind, options)
    opened.push(world)
    return world
  }
}

/** A promise that the test settles: what a handler waits for. */
export function gate<T = void>(): { readonly promise: Promise<T>; open(value: T): void; fail(error: unknown): void } {
  let open: (value: T) => void = () => undefined
  let fail: (error: unknown) => void = () => undefined
  const promise = new Promise<T>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  return { promise, open, fail }
}

/** The code a call was refused with. */
export async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'accepted'
  } catch (error) {
    return (error as { readonly code?: string }).code ?? `no code: ${String(error)}`
  }
}
