/** ChokaQ as it is built into dist/, with its own settings but for the number of slots. */
import pg from 'pg'
import { z } from 'zod'
import { createChokaQ, defineJob, type ChokaQ } from '../../../dist/index.js'
import { postgres } from '../../../dist/storage/postgres/index.js'
import { createWorker, defineHandler, type Worker } from '../../../dist/worker.js'
import { connectionCount, Payloads, type Contender, type Place } from '../contender.ts'

const schema = z.object({ invoiceId: z.string(), amountCents: z.number(), email: z.string() })
const plainJob = defineJob({ type: 'noop.v1', payload: schema })
const keyedJob = defineJob({ type: 'noop.v1', payload: schema, key: (p) => p.invoiceId, duplicateWindow: '1d' })
/** Four of its connections are for outcomes, heartbeat and LISTEN. */
const ownConnections = 4
const concurrency = 250

export class ChokaQContender implements Contender {
  readonly #place: Place
  readonly #payloads = new Payloads()
  readonly #chokaq: ChokaQ
  readonly #job: typeof plainJob | typeof keyedJob
  #worker: Worker | undefined

  constructor(place: Place) {
    this.#place = place
    this.#job = place.variant === 'keyed' ? keyedJob : plainJob
    // A pool lends its settings, and with them the same copy of pg that everyone here uses.
    const pool = new pg.Pool({ connectionString: place.url })
    this.#chokaq = createChokaQ({ storage: postgres(pool, { poolSize: connectionCount - ownConnections }) })
  }

  async open(): Promise<void> {
    await this.#chokaq.ready()
  }

  async enqueueMany(count: number): Promise<void> {
    for (const payloads of this.#payloads.chunksOf(count)) await this.#chokaq.enqueueMany(this.#job, payloads)
  }

  async enqueueOne(): Promise<void> {
    await this.#chokaq.enqueue(this.#job, this.#payloads.one())
  }

  async work(onJobs: (count: number) => void): Promise<void> {
    const handler = defineHandler(this.#job, {
      sideEffects: 'none',
      ...(this.#place.variant === 'keep 0' ? { keep: { completed: 0 } } : {}),
      run: async () => onJobs(1),
    })
    this.#worker = createWorker({ chokaq: this.#chokaq, handlers: [handler], concurrency })
    await this.#worker.start()
  }

  async rest(): Promise<void> {
    await this.#worker?.stop()
  }

  async leftCount(): Promise<number> {
    const client = new pg.Client(this.#place.url)
    await client.connect()
    const { rows } = await client.query<{ n: number }>('SELECT count(*)::int AS n FROM chokaq.jobs_hot')
    await client.end()
    return rows[0]?.n ?? Number.NaN
  }

  async close(): Promise<void> {
    await this.#chokaq.close()
  }
}
