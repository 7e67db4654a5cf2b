/** Runs a worker until nothing is left to do, without timers and without waiting. */
import type { Worker } from '../engine/worker.ts'
import { partsOf } from '../engine/parts.ts'
import type { FakeRuntime } from './fake-runtime.ts'
import { TestingError } from './testing-error.ts'

export interface DrainOptions {
  /** The fake runtime of the client: time then moves to the next job that waits for its time. */
  readonly runtime?: FakeRuntime
  /** Gives up after this many rounds, because a job that always waits again would never end. Defaults to 1,000. */
  readonly maxRounds?: number
}

const defaultMaxRounds = 1_000

/**
 * Ticks a worker until it finds no job any more; gives the number of settled attempts. With a fake runtime it also moves
 * time to the next delayed job or retry, so that a job with 22 attempts is over within milliseconds.
 *
 * The worker must be new: one that was started works by itself.
 *
 * @example
 * const runtime = createFakeRuntime()
 * const chokaq = createChokaQ({ storage: sqlite(':memory:'), runtime })
 * const worker = createWorker({ chokaq, handlers: [resize] })
 * await chokaq.enqueue(resizeImage, { id: 'p1' }, { delay: '1h' })
 * expect(await drain(worker, { runtime })).toBe(1)
 */
export async function drain(worker: Worker, options: DrainOptions = {}): Promise<number> {
  const { runtime, maxRounds = defaultMaxRounds } = options
  const { driver } = partsOf(worker)
  let total = 0
  for (let round = 0; round < maxRounds; round += 1) {
    const tick = worker.tick()
    const settled = await (runtime === undefined ? tick : runtime.complete(tick))
    total += settled
    if (settled > 0) continue
    if (runtime === undefined) return total
    const { promotedCount, nextDueInMs } = await driver.promote({ limit: 1 })
    if (promotedCount > 0) continue
    if (nextDueInMs === undefined) return total
    await runtime.advance(nextDueInMs)
  }
  throw new TestingError(`The worker still finds work after ${maxRounds} rounds; ${total} attempts were settled`)
}
