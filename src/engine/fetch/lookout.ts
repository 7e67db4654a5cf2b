/** Asks the storage for work, each question within the deadline of a call, and knows when it last did. */
import type { FetchedJob } from '../../core/job.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { StorageDriver, TypePolicy } from '../../core/storage.ts'
import { withDeadline } from '../deadline.ts'

export interface LookoutParts {
  readonly driver: StorageDriver
  readonly runtime: Runtime
  readonly workerId: string
  readonly policies: readonly TypePolicy[]
  readonly deadlineMs: number
}

export class Lookout {
  readonly #parts: LookoutParts
  readonly #types: readonly string[]
  #turnedMs: number | undefined

  constructor(parts: LookoutParts) {
    this.#parts = parts
    this.#types = parts.policies.map(({ type }) => type)
  }

  /** When a question was last begun or answered, or `turned` called; on the monotonic clock. */
  get turnedMs(): number | undefined {
    return this.#turnedMs
  }

  turned(): void {
    this.#turnedMs = this.#parts.runtime.clock.monotonicMs()
  }

  busy(queues: readonly string[]): Promise<readonly string[]> {
    return this.#ask('busyQueues', this.#parts.driver.busyQueues({ queues, types: this.#types }))
  }

  fetch(queue: string, limit: number): Promise<readonly FetchedJob[]> {
    const { driver, workerId, policies } = this.#parts
    return this.#ask('fetch', driver.fetch({ workerId, queue, limit, policies }))
  }

  #ask<T>(what: string, call: Promise<T>): Promise<T> {
    this.turned()
    const { runtime, deadlineMs } = this.#parts
    return withDeadline(runtime.scheduler, deadlineMs, what, call).finally(() => this.turned())
  }
}
