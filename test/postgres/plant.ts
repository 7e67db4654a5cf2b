// A worker in this process with two kinds of handlers, and jobs that flow through it while something is wrong with the
// database. Every job leaves one row in a table of the application's, by ctx.transaction.
import { createChokaQ, defineJob, type ChokaQ, type ChokaQEvent, type Storage } from 'chokaq'
import { createWorker, defineHandler, type Worker, type WorkerOptions } from 'chokaq/worker'
import { z } from 'zod'
import { leaseTimes } from '../crash/fixtures/work.ts'
import { until } from '../crash/until.ts'
import type { TestDatabase } from './database.ts'

const parcel = defineJob({
  type: 'parcel.v1',
  payload: z.object({ no: z.number() }),
  key: ({ no }) => String(no),
  duplicateWindow: '1d',
})

const flowMs = 30_000
/** No number twice in a database: its checkpoint would be remembered. */
let newestNo = 0

export class Plant {
  readonly chokaq: ChokaQ
  readonly worker: Worker
  readonly events: ChokaQEvent[] = []
  readonly #database: TestDatabase
  readonly #ordered: number[] = []

  static async open(database: TestDatabase, storage: Storage, times: WorkerOptions = leaseTimes): Promise<Plant> {
    await database.query('CREATE TABLE IF NOT EXISTS public.parcels (no integer NOT NULL)')
    await database.query('TRUNCATE public.parcels, chokaq.jobs_hot, chokaq.jobs_archive, chokaq.idempotency_markers')
    const plant = new Plant(database, storage, times)
    await plant.worker.start()
    return plant
  }

  private constructor(database: TestDatabase, storage: Storage, times: WorkerOptions) {
    this.#database = database
    this.chokaq = createChokaQ({ storage, enqueueDeadline: 1_500, onEvent: (event) => void this.events.push(event) })
    const ship = defineHandler(parcel, {
      sideEffects: 'same-transaction',
      whenInterrupted: 'resume',
      retry: { attempts: 20, backoff: { base: 50, cap: 500 } },
      async run({ no }, ctx) {
        await ctx.transaction('ship', async (tx) => {
          await tx.query('INSERT INTO public.parcels VALUES ($1)', [no])
        })
      },
    })
    this.worker = createWorker({ chokaq: this.chokaq, handlers: [ship], ...times })
  }

  /** Enqueues until the storage has accepted it. */
  async order(): Promise<void> {
    newestNo += 1
    const no = newestNo
    this.#ordered.push(no)
    await until(`parcel ${no} to be accepted`, flowMs, () =>
      this.chokaq.enqueue(parcel, { no }).then(
        () => true,
        () => false,
      ),
    )
  }

  /** One attempt. */
  orderOnce(): Promise<unknown> {
    return this.chokaq.enqueue(parcel, { no: -1 })
  }

  /** `count` more jobs, accepted and done. */
  async flow(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.order()))
    await this.settled()
  }

  /** Until all that was accepted is done. */
  async settled(): Promise<void> {
    await until('all parcels to be shipped', flowMs, async () => (await this.#waiting()) === 0)
  }

  /** What is wrong at the end: nothing may be lost, nothing may be there twice. */
  async problems(): Promise<readonly string[]> {
    const rows = await this.#database.query<{ readonly no: number; readonly copies: number }>(
      'SELECT no, count(*)::int AS copies FROM public.parcels GROUP BY no',
    )
    const copies = new Map(rows.map(({ no, copies: n }) => [no, n]))
    return this.#ordered.flatMap((no) =>
      copies.get(no) === 1 ? [] : [`parcel ${no} was shipped ${copies.get(no) ?? 0} times`],
    )
  }

  named<N extends ChokaQEvent['name']>(...names: readonly N[]): Extract<ChokaQEvent, { name: N }>[] {
    const wanted: ReadonlySet<string> = new Set(names)
    return this.events.filter((event): event is Extract<ChokaQEvent, { name: N }> => wanted.has(event.name))
  }

  async close(): Promise<void> {
    await this.worker.stop()
    await this.chokaq.close()
  }

  async #waiting(): Promise<number> {
    const [row] = await this.#database.query<{ readonly waiting: number }>(
      'SELECT count(*)::int AS waiting FROM chokaq.jobs_hot',
    )
    return row?.waiting ?? -1
  }
}
