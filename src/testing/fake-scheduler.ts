/** Timers on virtual time, and the end of the tick. See fake-runtime.ts for the rules. */
import type { Scheduler, Timer } from '../core/runtime.ts'

/** The longest delay a real timer can wait for; a longer one would fire at once. */
const maxDelayMs = 2 ** 31 - 1
/** Turns of the host's loop in which nothing was deferred and no timer set, after which a moment counts as over. */
const quietTurns = 4
/** A tick that defers for ever is a bug of the code under test. */
const maxTurns = 100_000

interface PendingTimer {
  readonly atMs: number
  readonly order: number
  readonly task: () => void
}

/** Virtual time cannot go where it is told to go. */
export class FakeTimeError extends Error {
  override readonly name = 'FakeTimeError'
}

export class FakeScheduler implements Scheduler {
  readonly #yieldToHost: () => Promise<void>
  readonly #timers = new Set<PendingTimer>()
  readonly #errors: unknown[] = []
  #deferred: (() => void)[] = []
  #nowMs = 0
  #order = 0
  /** Rises with everything that asks for more to happen, so that a quiet turn can be told. */
  #activity = 0
  #advancing = false

  constructor(yieldToHost: () => Promise<void>) {
    this.#yieldToHost = yieldToHost
  }

  after(delayMs: number, task: () => void): Timer {
    this.#activity += 1
    this.#order += 1
    const atMs = this.#nowMs + Math.min(Math.max(delayMs, 0), maxDelayMs)
    const timer = { atMs, order: this.#order, task }
    this.#timers.add(timer)
    return { cancel: () => void this.#timers.delete(timer) }
  }

  defer(task: () => void): void {
    this.#activity += 1
    this.#deferred.push(task)
    if (this.#deferred.length === 1) void this.#yieldToHost().then(() => this.#runDeferred())
  }

  /** Virtual milliseconds since the start. */
  nowMs(): number {
    return this.#nowMs
  }

  nextTimerMs(): number | undefined {
    return this.#earliest()?.atMs
  }

  pendingTimerCount(): number {
    return this.#timers.size
  }

  async advance(ms: number): Promise<void> {
    if (this.#advancing) throw new FakeTimeError('Time is moved by two callers at once; await the first advance()')
    if (!(ms >= 0)) throw new FakeTimeError(`Time cannot move by ${ms} ms`)
    this.#advancing = true
    try {
      const targetMs = this.#nowMs + ms
      await this.settle()
      for (let timer = this.#earliest(); timer !== undefined && timer.atMs <= targetMs; timer = this.#earliest()) {
        this.#timers.delete(timer)
        this.#nowMs = Math.max(this.#nowMs, timer.atMs)
        timer.task()
        await this.settle()
      }
      this.#nowMs = targetMs
    } finally {
      this.#advancing = false
    }
  }

  async settle(): Promise<void> {
    let quiet = 0
    for (let turn = 0; quiet < quietTurns; turn += 1) {
      if (turn > maxTurns) throw new FakeTimeError('The tick never ends: each deferred task defers another one')
      const before = this.#activity
      await this.#yieldToHost()
      quiet = this.#activity === before && this.#deferred.length === 0 ? quiet + 1 : 0
    }
    if (this.#errors.length > 0) throw this.#errors.shift()
  }

  #earliest(): PendingTimer | undefined {
    let first: PendingTimer | undefined
    for (const timer of this.#timers) {
      if (first === undefined || timer.atMs < first.atMs || (timer.atMs === first.atMs && timer.order < first.order)) {
        first = timer
      }
    }
    return first
  }

  #runDeferred(): void {
    const tasks = this.#deferred
    this.#deferred = []
    for (const task of tasks) {
      try {
        task()
      } catch (error) {
        this.#errors.push(error)
      }
    }
  }
}
