/**
 * Repeats a storage call while its failure is transient. A finished handler's outcome is worth many tries: it is kept
 * in memory and offered until the lease is certainly gone.
 */
import { isTransient } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import { describeFailure } from '../core/failure.ts'
import type { Scheduler } from '../core/runtime.ts'

const firstDelayMs = 20
const maxDelayMs = 1_000

export interface PersistOptions {
  readonly scheduler: Scheduler
  readonly events: EventBus
  /** For the event: which call. */
  readonly during: string
  /** True where repeating has no point any more. */
  readonly stop: () => boolean
}

export async function persist<T>(options: PersistOptions, call: () => Promise<T>): Promise<T> {
  let delayMs = firstDelayMs
  for (;;) {
    try {
      return await call()
    } catch (error) {
      options.events.emit({ name: 'storage.failed', during: options.during, failure: describeFailure(error) })
      if (!isTransient(error) || options.stop()) throw error
      await new Promise<void>((resolve) => {
        options.scheduler.after(delayMs, resolve)
      })
      delayMs = Math.min(maxDelayMs, delayMs * 2)
      if (options.stop()) throw error
    }
  }
}
