/** A bound on waiting: storage calls must not hang a stage for ever. */
import { ChokaQError } from '../core/errors.ts'
import type { Scheduler } from '../core/runtime.ts'

/**
 * The promise's own answer, or CHOKAQ_STORAGE_FAILED after `deadlineMs`. The call itself may still happen: whoever
 * uses this must be able to read back or repeat.
 */
export function withDeadline<T>(
  scheduler: Scheduler,
  deadlineMs: number,
  what: string,
  promise: Promise<T>,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = scheduler.after(deadlineMs, () => {
      reject(new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem: `${what} gave no answer for ${deadlineMs} ms` }))
    })
    promise.then(
      (value) => {
        timer.cancel()
        resolve(value)
      },
      (error: unknown) => {
        timer.cancel()
        // What the storage rejected with is passed on as it is.
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
        reject(error)
      },
    )
  })
}

/** Resolves after `delayMs` of the scheduler's time. */
export function pause(scheduler: Scheduler, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    scheduler.after(delayMs, resolve)
  })
}
