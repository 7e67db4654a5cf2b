/**
 * A `Runtime` in which nothing happens by itself: time stands still until a test moves it, chance comes from a seed, and
 * processes die when a test says so. Engine and storage run on it unchanged.
 *
 * Time moves only inside `advance` and `runUntil`, timer by timer, in the order of their times (of equal times: the
 * order in which they were set). Between two timers the host's own event loop gets a few turns, so that promise
 * callbacks and the replies of a real database arrive at the virtual moment that caused them. Deferred tasks belong to
 * the current tick: they run in the next turn of the host's loop, always before the next timer.
 */
import { createHash } from 'node:crypto'
import { createFakeFaults, type FakeFaults } from './fake-faults.ts'
import { createFakeProcesses, type FakeProcesses } from './fake-processes.ts'
import { FakeScheduler, FakeTimeError } from './fake-scheduler.ts'
import { createSeededRandom, type SeededRandom } from './seeded-random.ts'
import type { ProcessIdentity, Runtime } from '../core/runtime.ts'

export interface FakeRuntimeOptions {
  /** Defaults to 1. */
  readonly seed?: number
  /** The wall clock at the start, milliseconds since 1970. Defaults to 2026-01-01. */
  readonly startMs?: number
  /** Gives the host's event loop one turn. Defaults to setImmediate. */
  readonly yieldToHost?: () => Promise<void>
}

export interface FakeRuntime extends Runtime {
  readonly faults: FakeFaults
  readonly processes: FakeProcesses
  readonly seed: number
  /** Chance for the test itself: drawing from it does not move `random()`. */
  readonly chance: SeededRandom
  /** Moves both clocks, timer by timer, and lets all that follows from each timer happen before the next. */
  advance(ms: number): Promise<void>
  /** Lets what is ready happen, without moving time. */
  settle(): Promise<void>
  /** Moves from timer to timer until the predicate holds; fails after `limitMs` of virtual time (default 1 h). */
  runUntil(predicate: () => boolean | Promise<boolean>, options?: { readonly limitMs?: number }): Promise<void>
  /** Moves from timer to timer until the promise has settled; what it gives. */
  complete<T>(promise: Promise<T>, options?: { readonly limitMs?: number }): Promise<T>
  /** Steps the wall clock alone, as an operator or NTP does. */
  stepWallClock(ms: number): void
  pendingTimerCount(): number
  /** The same world seen from another process: only `processes.self()` differs. */
  forProcess(identity: Partial<ProcessIdentity>): Runtime
}

const defaultStartMs = Date.UTC(2026, 0, 1)
const defaultLimitMs = 3_600_000
/** Turns of the host's loop without a timer to move to, after which a wait is hopeless. */
const hopelessTurns = 20_000

export function createFakeRuntime(options: FakeRuntimeOptions = {}): FakeRuntime {
  const seed = options.seed ?? 1
  const seeded = createSeededRandom(seed)
  const random = seeded.fork('runtime')
  const yieldToHost = options.yieldToHost ?? (() => new Promise<void>((resolve) => setImmediate(resolve)))
  const scheduler = new FakeScheduler(yieldToHost)
  const processes = createFakeProcesses()
  let wallOffsetMs = options.startMs ?? defaultStartMs
  const clock = { nowMs: () => wallOffsetMs + scheduler.nowMs(), monotonicMs: () => scheduler.nowMs() }

  const shared = {
    clock,
    scheduler,
    random: () => random.next(),
    newId: createIds(clock.nowMs, seeded.fork('ids')),
    sha256: (text: string) => createHash('sha256').update(text, 'utf8').digest('hex'),
    byteLength: (text: string) => Buffer.byteLength(text, 'utf8'),
    faults: createFakeFaults(),
  }
  const runtime: FakeRuntime = {
    ...shared,
    processes,
    seed,
    chance: seeded.fork('test'),
    advance: (ms) => scheduler.advance(ms),
    settle: () => scheduler.settle(),
    runUntil: (predicate, limits = {}) => runUntil(scheduler, predicate, limits.limitMs ?? defaultLimitMs),
    async complete(promise, limits = {}) {
      let settled = false
      const done = (): void => void (settled = true)
      promise.then(done, done)
      await runUntil(scheduler, () => settled, limits.limitMs ?? defaultLimitMs)
      return promise
    },
    stepWallClock: (ms) => void (wallOffsetMs += ms),
    pendingTimerCount: () => scheduler.pendingTimerCount(),
    forProcess: (identity) => ({ ...shared, processes: processes.seenFrom(identity) }),
  }
  return runtime
}

async function runUntil(
  scheduler: FakeScheduler,
  predicate: () => boolean | Promise<boolean>,
  limitMs: number,
): Promise<void> {
  const deadlineMs = scheduler.nowMs() + limitMs
  let turns = 0
  for (;;) {
    await scheduler.settle()
    if (await predicate()) return
    const nextMs = scheduler.nextTimerMs()
    if (nextMs !== undefined && nextMs > deadlineMs) {
      throw new FakeTimeError(`What runUntil waits for did not come within ${limitMs} ms of virtual time`)
    }
    // Without a timer only the host can bring news, such as the reply of a database in another process.
    if (nextMs !== undefined) await scheduler.advance(nextMs - scheduler.nowMs())
    else if ((turns += 1) > hopelessTurns)
      throw new FakeTimeError('What runUntil waits for cannot come: no timer is pending')
  }
}

/** UUIDs of version 7 whose order is the order of their making, even where the wall clock steps back. */
function createIds(nowMs: () => number, random: SeededRandom): () => string {
  let lastMs = 0
  let count = 0
  return () => {
    lastMs = Math.max(lastMs, nowMs())
    count += 1
    const time = Math.floor(lastMs).toString(16).padStart(12, '0').slice(-12)
    // 42 of the 74 free bits count, the other 32 are chance.
    const high = Math.floor(count / 2 ** 30)
      .toString(16)
      .padStart(3, '0')
      .slice(-3)
    const low = (0x80000000 + (count % 2 ** 30)).toString(16)
    const chance = random.int(0, 0xffffffff).toString(16).padStart(8, '0')
    return `${time.slice(0, 8)}-${time.slice(8)}-7${high}-${low.slice(0, 4)}-${low.slice(4)}${chance}`
  }
}
