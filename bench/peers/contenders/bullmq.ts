/**
 * BullMQ on Redis (append-only file, flushed every second: up to a second of accepted jobs is lost with the power) or on
 * its PostgreSQL backend. It keeps finished jobs unless it is told to remove them, as `keep 0` does.
 */
import { createPostgresBackend, Queue, setDefaultBackendFactory, Worker, type ConnectionOptions } from 'bullmq'
import { connectionCount, Payloads, type Contender, type Place } from '../contender.ts'

const queueName = 'noop'
const concurrency = 100

export class BullmqContender implements Contender {
  readonly #place: Place
  readonly #payloads = new Payloads()
  readonly #connection: ConnectionOptions
  readonly #queue: Queue
  #worker: Worker | undefined

  constructor(place: Place, backend: 'redis' | 'postgres') {
    this.#place = place
    if (backend === 'postgres') setDefaultBackendFactory(createPostgresBackend as never)
    this.#connection = (
      backend === 'postgres'
        ? { connectionString: place.url, schema: 'bullmq', max: connectionCount, migrate: true }
        : { host: '127.0.0.1', port: place.redisPort, maxRetriesPerRequest: null }
    ) as ConnectionOptions
    const removeOnComplete = place.variant === 'keep 0'
    this.#queue = new Queue(queueName, { connection: this.#connection, defaultJobOptions: { removeOnComplete } })
  }

  async open(): Promise<void> {
    await this.#queue.waitUntilReady()
  }

  async enqueueMany(count: number): Promise<void> {
    const isKeyed = this.#place.variant === 'keyed'
    for (const payloads of this.#payloads.chunksOf(count)) {
      await this.#queue.addBulk(
        payloads.map((data) => ({
          name: queueName,
          data,
          ...(isKeyed ? { opts: { deduplication: { id: data.invoiceId } } } : {}),
        })),
      )
    }
  }

  async enqueueOne(): Promise<void> {
    await this.#queue.add(queueName, this.#payloads.one())
  }

  async work(onJobs: (count: number) => void): Promise<void> {
    this.#worker = new Worker(queueName, async () => onJobs(1), { connection: this.#connection, concurrency })
    this.#worker.on('error', (error) => process.stderr.write(`bullmq: ${String(error)}\n`))
    await this.#worker.waitUntilReady()
  }

  async rest(): Promise<void> {
    await this.#worker?.close()
  }

  async leftCount(): Promise<number> {
    const counts = await this.#queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized')
    return Object.values(counts).reduce((sum, count) => sum + count, 0)
  }

  async close(): Promise<void> {
    await this.#queue.close()
  }
}
