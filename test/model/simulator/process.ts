// A process of the simulation: the engine on its own scheduler, so that a test can kill it or stop it for a while. What
// it has begun in the database stays; what it has in memory is gone.
import type { ProcessIdentity, Runtime, Timer } from '../../../src/core/runtime.ts'
import { ChokaQError } from '../../../src/core/errors.ts'
import type { FakeRuntime, SeededRandom } from '../../../src/testing/index.ts'

type CallFault = 'none' | 'before' | 'after' | 'crash-before' | 'crash-after' | 'freeze-before' | 'freeze-after'

const never = new Promise<never>(() => undefined)
const maxLatencyMs = 80
const longStallsMs = [12_000, 60_000, 90_000]

export interface ProcessEvents {
  readonly death: (process: SimProcess) => void
  readonly freeze: (process: SimProcess) => void
}

export class SimProcess {
  readonly name: string
  readonly runtime: Runtime
  readonly identity: ProcessIdentity
  /** Chance of each fault of a storage call. */
  faultRate = 0
  readonly #base: FakeRuntime
  readonly #chance: SeededRandom
  readonly #onDeath: (process: SimProcess) => void
  readonly #onFreeze: (process: SimProcess) => void
  #isDead = false
  #thaw: { readonly promise: Promise<void>; readonly tasks: (() => void)[]; end(): void } | undefined

  constructor(name: string, pid: number, base: FakeRuntime, on: ProcessEvents) {
    this.name = name
    this.#base = base
    this.#onDeath = on.death
    this.#onFreeze = on.freeze
    this.#chance = base.chance.fork(name)
    const inner = base.forProcess({ pid, startTime: String(pid) })
    this.identity = inner.processes.self()
    this.runtime = {
      ...inner,
      scheduler: {
        after: (delayMs, task) => this.#after(delayMs, task),
        defer: (task) => {
          base.scheduler.defer(() => {
            this.#run(task)
          })
        },
      },
    }
  }

  get isDead(): boolean {
    return this.#isDead
  }
  get isFrozen(): boolean {
    return this.#thaw !== undefined
  }

  /** As SIGKILL. Where others can look, they see that the process is gone; else only its silence tells. */
  kill(isSeen: boolean): void {
    if (this.#isDead) return
    this.#isDead = true
    if (isSeen) this.#base.processes.markGone(this.identity)
    this.#onDeath(this)
  }

  /** As SIGSTOP and SIGCONT, or a long garbage collection. */
  freeze(ms: number): void {
    if (this.#isDead || this.#thaw !== undefined) return
    this.#onFreeze(this)
    let end: () => void = () => undefined
    const promise = new Promise<void>((resolve) => (end = resolve))
    const thaw = { promise, tasks: [] as (() => void)[], end }
    this.#thaw = thaw
    this.#base.scheduler.after(ms, () => {
      this.#thaw = undefined
      for (const task of thaw.tasks) this.#run(task)
      thaw.end()
    })
  }

  /** A call to the database: it may be slow, fail on either side, or be the last thing this process does. */
  async call<T>(name: string, run: () => Promise<T>): Promise<T> {
    const fault = this.#fault()
    await this.#latency()
    if (this.#isDead) return never
    // Sent, and executed long after: by then the lease may be somebody else's.
    if (fault === 'freeze-before') this.freeze(this.#chance.pick(longStallsMs))
    await this.#thaw?.promise
    if (fault === 'crash-before') this.kill(this.#chance.chance(0.5))
    if (this.#isDead) return never
    if (fault === 'before') throw lost(name)
    const result = await run()
    if (fault === 'crash-after') this.kill(this.#chance.chance(0.5))
    // The moment at which it hurts most: the database has done it, and the process learns of it much later.
    if (fault === 'freeze-after') this.freeze(this.#chance.pick(longStallsMs))
    await this.#latency()
    if (this.#isDead) return never
    if (fault === 'after') throw lost(name)
    return result
  }

  #fault(): CallFault {
    if (this.faultRate === 0 || !this.#chance.chance(this.faultRate)) return 'none'
    return this.#chance.pick([
      'before',
      'before',
      'after',
      'after',
      'crash-before',
      'crash-after',
      'freeze-before',
      'freeze-after',
    ])
  }

  async #latency(): Promise<void> {
    await this.#thaw?.promise
    if (!this.#chance.chance(0.15)) return
    const ms = this.#chance.int(1, maxLatencyMs)
    await new Promise<void>((resolve) => this.#base.scheduler.after(ms, resolve))
    await this.#thaw?.promise
  }

  #after(delayMs: number, task: () => void): Timer {
    if (this.#isDead) return { cancel: () => undefined }
    let cancelled = false
    const timer = this.#base.scheduler.after(delayMs, () => {
      this.#run(() => {
        if (!cancelled) task()
      })
    })
    return {
      cancel: () => {
        cancelled = true
        timer.cancel()
      },
    }
  }

  #run(task: () => void): void {
    if (this.#isDead) return
    if (this.#thaw !== undefined) this.#thaw.tasks.push(task)
    else task()
  }
}

function lost(name: string): ChokaQError {
  return new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem: `the simulation cut the connection at ${name}` })
}
