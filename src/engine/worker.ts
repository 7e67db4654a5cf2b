/** The worker: composes the stages, and replaces its incarnation when that one is fenced. */
import { checkBoot } from '../core/boot-check.ts'
import { maxConcurrency, resolveWorkerConfig, whole, type WorkerConfig, type WorkerOptions } from '../core/config.ts'
import type { Middleware } from '../core/ctx.ts'
import { ChokaQError } from '../core/errors.ts'
import { describeFailure, type StoredFailure } from '../core/failure.ts'
import type { Handler } from '../core/handler.ts'
import type { Timer } from '../core/runtime.ts'
import type { Hearing } from '../core/storage.ts'
import { withDeadline } from './deadline.ts'
import { healthOf, storageHealth, workerReasons, type Health, type HealthOptions, type WorkerVitals } from './health.ts'
import { partsOf, partsSymbol, type ChokaQParts } from './parts.ts'
import { Slots } from './process/slots.ts'
import { Sweeper } from './sweep/sweeper.ts'
import type { WorkerCore } from './worker-core.ts'
import { createLedger } from './worker-effects.ts'
import { Incarnation } from './worker-incarnation.ts'
import { RegisteredTypes } from './worker-types.ts'

export interface CreateWorkerOptions extends WorkerOptions {
  /** What createChokaQ returned. */
  chokaq: object
  handlers: readonly Handler[]
  /** Queues to serve, in rotation. Defaults to those of the handlers' contracts. */
  queues?: readonly string[]
  /** Around every handler, the first one outermost. */
  middleware?: readonly Middleware[]
  /** For people; defaults to host:pid. */
  name?: string
}

export type WorkerState = 'new' | 'starting' | 'running' | 'stopping' | 'stopped'

export interface Worker {
  /** This incarnation's id in the database; changes when the worker was declared dead and came back. */
  readonly id: string
  readonly state: WorkerState
  readonly runningCount: number
  /** How long ago its loops turned. `health()` judges this. */
  readonly vitals: WorkerVitals
  /** Starts; resolves once it is stopped. */
  run(): Promise<void>
  /** Resolves when it is registered and looks for work. @throws CHOKAQ_BOOT_REFUSED */
  start(): Promise<void>
  /**
   * Stops fetching, gives back what never started, lets handlers finish for `shutdownGrace`, then aborts them. `force`
   * aborts at once; a second call with it hurries the first. Calling it again is harmless.
   */
  stop(options?: { force?: boolean }): Promise<void>
  /** One round without timers, for tests and scripts: promotes, fetches once, runs, settles; gives the number settled. */
  tick(): Promise<number>
  /** Whether it is running, its loops turn, its storage answers and its queues do not lag. Rejects for wrong options only. */
  health(options?: HealthOptions): Promise<Health>
  /** Takes effect at once; lowering it stops nothing that runs. 1 to 1,000. */
  setConcurrency(concurrency: number): void
}

const ownFields = ['chokaq', 'handlers', 'queues', 'middleware', 'name']
const restartDelayMs = 1_000
/** What the fetch loop waits at most after a storage error. */
const maxFetchDelayMs = 5_000

/**
 * Makes a worker. Nothing happens until `run`, `start` or `tick`.
 *
 * @example
 * const worker = createWorker({ chokaq, handlers: [resize], concurrency: 20 })
 * await worker.run()
 *
 * @throws CHOKAQ_CONFIG_INVALID, CHOKAQ_OPTION_INVALID, CHOKAQ_HANDLER_INVALID
 */
export function createWorker(options: CreateWorkerOptions): Worker {
  return new EngineWorker(options)
}

class EngineWorker implements Worker {
  /** For chokaq/testing. */
  readonly [partsSymbol]: ChokaQParts
  readonly #core: WorkerCore
  readonly #config: WorkerConfig
  readonly #sweeper: Sweeper
  #incarnation: Incarnation
  #state: WorkerState = 'new'
  #booted: Promise<void> | undefined
  #stopped: Promise<void> | undefined
  #unsubscribe: () => void = () => undefined
  #releaseTimer: Timer | undefined
  #reincarnating: Promise<void> = Promise.resolve()
  #endRestartDelay: () => void = () => undefined
  #onStopped: (() => void)[] = []

  constructor(options: CreateWorkerOptions) {
    this[partsSymbol] = partsOf(options.chokaq)
    const { driver, runtime, config: client, events, tracing } = this[partsSymbol]
    this.#config = resolveWorkerConfig(options, ownFields)
    const types = new RegisteredTypes(options.handlers, this.#config, client)
    const self = runtime.processes.self()
    this.#core = {
      driver,
      runtime,
      events,
      tracing,
      client,
      config: this.#config,
      name: options.name ?? `${self.host}:${self.pid}`,
      queues: options.queues === undefined || options.queues.length === 0 ? types.queues : [...new Set(options.queues)],
      types,
      middleware: [...(options.middleware ?? [])],
      slots: new Slots(this.#config.concurrency),
      ledger: createLedger({ driver, runtime, events, config: this.#config, stop: () => this.#state === 'stopped' }),
    }
    this.#sweeper = new Sweeper({
      driver,
      runtime,
      events,
      config: this.#config,
      workerId: () => this.#incarnation.id,
      onReady: () => {
        this.#incarnation.kick()
      },
    })
    this.#incarnation = this.#newIncarnation()
  }

  get id(): string {
    return this.#incarnation.id
  }
  get state(): WorkerState {
    return this.#state
  }
  get runningCount(): number {
    return this.#incarnation.runningCount
  }

  async run(): Promise<void> {
    const stopped = new Promise<void>((resolve) => this.#onStopped.push(resolve))
    await this.start()
    await stopped
  }

  async start(): Promise<void> {
    if (this.#state !== 'new') throw new ChokaQError('CHOKAQ_WORKER_STATE', { call: 'start', state: this.#state })
    this.#state = 'starting'
    try {
      await this.#boot()
    } catch (error) {
      if (this.#isState('starting')) this.#finish()
      throw error
    }
    // stop() may have been called meanwhile; then it has the word.
    if (!this.#isState('starting')) return
    this.#state = 'running'
    const { driver, events } = this.#core
    const { sharedByMachines, supportsListen } = driver.capabilities
    const wake = (): void => this.#incarnation.kick()
    this.#unsubscribe = driver.onWake(wake, (hearing) => this.#reportHearing(hearing))
    this.#incarnation.begin()
    this.#sweeper.start()
    this.#armRelease()
    events.emit({ name: 'worker.started', workerId: this.id, concurrency: this.#core.slots.limit })
    if (sharedByMachines && !supportsListen) this.#reportPolling(null)
  }

  #reportHearing(hearing: Hearing): void {
    if (hearing.hears) this.#core.events.emit({ name: 'storage.listening', workerId: this.id })
    else this.#reportPolling(describeFailure(hearing.error))
  }

  #reportPolling(failure: StoredFailure | null): void {
    const { pollMs } = this.#config
    this.#core.events.emit({ name: 'storage.polling', workerId: this.id, pollMs, failure })
  }

  stop(options: { force?: boolean } = {}): Promise<void> {
    if (this.#stopped !== undefined && options.force === true) this.#incarnation.abortAll('shutdown')
    this.#stopped ??= this.#stop(options.force === true)
    return this.#stopped
  }

  async tick(): Promise<number> {
    if (this.#state !== 'new') throw new ChokaQError('CHOKAQ_WORKER_STATE', { call: 'tick', state: this.#state })
    await this.#boot()
    await this.#sweeper.promote()
    const settled = await this.#incarnation.tick()
    if (this.#incarnation.fenced) {
      this.#incarnation = this.#newIncarnation()
      await this.#incarnation.register()
    }
    return settled
  }

  async health(options: HealthOptions = {}): Promise<Health> {
    const storage = await storageHealth(this.#core, withDeadline, { queues: this.#core.queues, ...options })
    return healthOf([...workerReasons(this.vitals), ...storage.reasons])
  }

  get vitals(): WorkerVitals {
    const { heartbeatMs, fenceAfterMs, pollMs, statementDeadlineMs } = this.#config
    const fetchTurnMs = 2 * pollMs + statementDeadlineMs + maxFetchDelayMs
    return { ...this.#incarnation.vitals, state: this.#state, heartbeatMs, fenceAfterMs, fetchTurnMs }
  }

  setConcurrency(concurrency: number): void {
    this.#core.slots.limit = whole(concurrency, 'concurrency', 1, 1, maxConcurrency)
    this.#incarnation.kick()
  }

  #boot(): Promise<void> {
    this.#booted ??= this.#bootOnce()
    return this.#booted
  }

  async #bootOnce(): Promise<void> {
    const { types, client, events, driver } = this.#core
    const { refusals, warnings } = checkBoot(types.handlers, this.#config, client)
    if (refusals.length > 0) {
      throw new ChokaQError('CHOKAQ_BOOT_REFUSED', { problems: refusals.map(({ rule, text }) => `${rule}: ${text}`) })
    }
    for (const { rule, text } of warnings) events.emit({ name: 'worker.warning', workerId: this.id, rule, text })
    await driver.ready()
    await driver.saveJobTypes(types.rows())
    await this.#incarnation.register()
  }

  async #stop(force: boolean): Promise<void> {
    if (this.#state === 'stopped') return
    const workerId = this.id
    const { events } = this.#core
    this.#state = 'stopping'
    events.emit({ name: 'worker.stopping', workerId })
    this.#unsubscribe()
    this.#releaseTimer?.cancel()
    await this.#booted?.catch(() => undefined)
    this.#endRestartDelay()
    await Promise.all([
      this.#sweeper.stop(),
      this.#reincarnating,
      this.#booted === undefined ? undefined : this.#incarnation.end({ force }),
    ])
    this.#finish()
    events.emit({ name: 'worker.stopped', workerId })
  }

  #finish(): void {
    this.#state = 'stopped'
    for (const resolve of this.#onStopped.splice(0)) resolve()
  }

  #newIncarnation(): Incarnation {
    return new Incarnation(this.#core, () => {
      if (this.#state === 'running') this.#reincarnating = this.#reincarnate()
    })
  }

  /** A fenced worker comes back under a new id as soon as the storage answers. */
  async #reincarnate(): Promise<void> {
    const { runtime, events } = this.#core
    const next = this.#newIncarnation()
    while (this.#isState('running')) {
      try {
        await next.register()
        break
      } catch (error) {
        events.emit({ name: 'storage.failed', during: 'registerWorker', failure: describeFailure(error) })
        if (!this.#isState('running')) return
        await new Promise<void>((resolve) => {
          const timer = runtime.scheduler.after(restartDelayMs, resolve)
          this.#endRestartDelay = () => {
            timer.cancel()
            resolve()
          }
        })
      }
    }
    if (!this.#isState('running')) {
      await next.end({ force: true })
      return
    }
    this.#incarnation = next
    next.begin()
    events.emit({ name: 'worker.started', workerId: next.id, concurrency: this.#core.slots.limit })
  }

  #armRelease(): void {
    this.#releaseTimer = this.#core.runtime.scheduler.after(this.#config.heartbeatMs, () => {
      this.#incarnation.releaseStale()
      if (this.#state === 'running') this.#armRelease()
    })
  }

  // The state changes while a method awaits; read through a method, so that the compiler does not think it knows it.
  #isState(state: WorkerState): boolean {
    return this.#state === state
  }
}
