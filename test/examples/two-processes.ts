// Two processes of one database on virtual time: one dies in the middle of a handler, the other one goes on.
import { createChokaQ, type ChokaQ, type Storage } from 'chokaq'
import type { FakeRuntime } from 'chokaq/testing'
import { createWorker, type Handler } from 'chokaq/worker'
import { faultyStorage } from '../../src/testing/faulty-storage.ts'

const doomed = { pid: 4242 }

/** What a process waits for that is never answered. */
export const never = <T>(): Promise<T> => new Promise<T>(() => undefined)

export class TwoProcesses {
  readonly runtime: FakeRuntime
  /** The client of the process that stays alive. */
  readonly chokaq: ChokaQ
  readonly #storage: Storage
  readonly #clients: ChokaQ[] = []

  constructor({ storage, runtime }: { readonly storage: Storage; readonly runtime: FakeRuntime }) {
    this.#storage = storage
    this.runtime = runtime
    this.chokaq = this.#client(createChokaQ({ storage, runtime }))
  }

  /** Runs the handlers in the other process until `reached` holds; at that moment it is gone for good. */
  async crash(handlers: readonly Handler[], reached: () => boolean): Promise<void> {
    let isGone = false
    const storage = faultyStorage(this.#storage, (call) => (isGone && call !== 'close' ? 'hang' : 'none'))
    const other = this.#client(createChokaQ({ storage, runtime: this.runtime.forProcess(doomed) }))
    await this.runtime.complete(createWorker({ chokaq: other, handlers }).start())
    await this.runtime.runUntil(reached)
    isGone = true
    this.runtime.processes.markGone({ ...this.runtime.processes.self(), ...doomed })
  }

  /** Runs what is there in the process that is alive: it takes the jobs of the other one back first. */
  async goOn(handlers: readonly Handler[]): Promise<void> {
    const worker = createWorker({ chokaq: this.chokaq, handlers })
    await this.runtime.complete(worker.start())
    await this.runtime.runUntil(async () => (await this.chokaq.jobs.list('hot')).jobs.length === 0)
    await this.runtime.complete(worker.stop())
  }

  async close(): Promise<void> {
    for (const client of this.#clients) await client.close()
  }

  #client(chokaq: ChokaQ): ChokaQ {
    this.#clients.push(chokaq)
    return chokaq
  }
}
