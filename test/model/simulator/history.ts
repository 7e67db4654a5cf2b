// What happened, in the order in which the database did it. The invariants are checked against this and the final rows.
import type { NewJob } from '../../../src/core/job.ts'
import type { EnqueueVerdict, SettleAction, SettleVerdict, Storage, StorageDriver } from '../../../src/core/storage.ts'
import type { SimProcess } from './process.ts'

export type HistoryEntry =
  | { readonly kind: 'enqueue'; readonly row: NewJob; readonly verdict: EnqueueVerdict }
  /** What a producer was told. */
  | { readonly kind: 'answer'; readonly op: number; readonly outcome: string; readonly id: string }
  | {
      readonly kind: 'fetch'
      readonly jobId: string
      readonly token: number
      readonly queue: string
      readonly state: 'fetched' | 'processing'
      readonly attempt: number
    }
  | { readonly kind: 'start'; readonly jobId: string; readonly token: number; readonly attempt: number }
  | {
      readonly kind: 'settle'
      readonly jobId: string
      readonly token: number
      readonly action: SettleAction
      readonly verdict: SettleVerdict
    }
  | {
      readonly kind: 'rescue'
      readonly jobId: string
      readonly workerId: string
      readonly went: 'pending' | 'dead' | 'cancelled'
    }
  | { readonly kind: 'register'; readonly workerId: string; readonly process: string }
  | { readonly kind: 'disown'; readonly workerId: string; readonly count: number }
  /** A handler was called. */
  | {
      readonly kind: 'run'
      readonly process: string
      readonly jobId: string
      readonly key: string | undefined
      readonly attempt: number
      readonly payload: string
    }
  | { readonly kind: 'cancel'; readonly jobId: string; readonly verdict: string }
  | { readonly kind: 'pause' | 'resume'; readonly queue: string }
  | { readonly kind: 'kill' | 'freeze' | 'boot' | 'bad-connection'; readonly process: string }

export type TimedEntry = HistoryEntry & { readonly atMs: number }

export class History {
  readonly entries: TimedEntry[] = []
  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  add(entry: HistoryEntry): void {
    this.entries.push({ ...entry, atMs: this.#nowMs() })
  }

  of<K extends HistoryEntry['kind']>(kind: K): Extract<TimedEntry, { kind: K }>[] {
    return this.entries.filter((entry): entry is Extract<TimedEntry, { kind: K }> => entry.kind === kind)
  }
}

/** The one database of the simulation, as one process reaches it. */
export function storageOf(storage: Storage, driver: StorageDriver, process: SimProcess, history: History): Storage {
  return { ...storage, open: () => observed(driver, process, history) }
}

/** The calls whose outcome stands in the history, written down when the database has done them. */
function recording(driver: StorageDriver, process: SimProcess, history: History): Partial<StorageDriver> {
  return {
    close: () => Promise.resolve(),
    enqueue: (rows) =>
      process.call('enqueue', async () => {
        const verdicts = await driver.enqueue(rows)
        verdicts.forEach((verdict, i) => {
          history.add({ kind: 'enqueue', row: rows[i] as NewJob, verdict })
        })
        return verdicts
      }),
    fetch: (request) =>
      process.call('fetch', async () => {
        const jobs = await driver.fetch(request)
        for (const { lease, queue, state, attempt } of jobs) {
          history.add({ kind: 'fetch', ...lease, queue, state, attempt })
        }
        return jobs
      }),
    start: (requests) =>
      process.call('start', async () => {
        const verdicts = await driver.start(requests)
        verdicts.forEach((verdict, i) => {
          const lease = requests[i]?.lease
          if (verdict.kind === 'started' && lease !== undefined) {
            history.add({ kind: 'start', ...lease, attempt: verdict.attempt })
          }
        })
        return verdicts
      }),
    settle: (settlements) =>
      process.call('settle', async () => {
        const verdicts = await driver.settle(settlements)
        verdicts.forEach((verdict, i) => {
          const settlement = settlements[i]
          if (settlement === undefined) return
          history.add({ kind: 'settle', ...settlement.lease, action: settlement.action, verdict })
        })
        return verdicts
      }),
    rescue: (request) =>
      process.call('rescue', async () => {
        const rescued = await driver.rescue(request)
        for (const { jobId, workerId, went } of rescued) history.add({ kind: 'rescue', jobId, workerId, went })
        return rescued
      }),
    registerWorker: (info) =>
      process.call('registerWorker', async () => {
        await driver.registerWorker(info)
        history.add({ kind: 'register', workerId: info.id, process: process.name })
      }),
    disown: (request) =>
      process.call('disown', async () => {
        const count = await driver.disown(request)
        if (count > 0) history.add({ kind: 'disown', workerId: request.workerId, count })
        return count
      }),
  }
}

function observed(driver: StorageDriver, process: SimProcess, history: History): StorageDriver {
  const watched = recording(driver, process, history)
  return new Proxy(driver, {
    get(target, name) {
      const own: unknown = Reflect.get(watched, name)
      if (own !== undefined) return own
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function' || name === 'onWake') {
        return typeof member === 'function' ? (member.bind(target) as unknown) : member
      }
      const method = member.bind(target) as (...args: unknown[]) => Promise<unknown>
      return (...args: unknown[]) => process.call(String(name), () => method(...args))
    },
  })
}
