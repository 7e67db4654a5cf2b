/**
 * graphile-worker with the settings its pages name for throughput: a local queue, and completions in batches. Its logger
 * writes a line per job unless it is told not to (NO_LOG_SUCCESS), which halves it. A finished job is deleted: it keeps
 * no history at all.
 */
import { makeWorkerUtils, run, type Runner, type WorkerUtils } from 'graphile-worker'
import { connectionCount, Payloads, type Contender, type Place } from '../contender.ts'

const schema = 'graphile_worker'
const concurrentJobs = 24
const localQueueSize = 500
/** Gathers what ends in the same tick; a longer wait made the drain no faster here. */
const batchDelayMs = 0

export class GraphileWorkerContender implements Contender {
  readonly #place: Place
  readonly #payloads = new Payloads()
  #utils: WorkerUtils | undefined
  #runner: Runner | undefined

  constructor(place: Place) {
    process.env['NO_LOG_SUCCESS'] = '1'
    this.#place = place
  }

  get #opened(): WorkerUtils {
    if (this.#utils === undefined) throw new TypeError('open() comes first')
    return this.#utils
  }

  async open(): Promise<void> {
    this.#utils = await makeWorkerUtils({ connectionString: this.#place.url, schema, maxPoolSize: connectionCount })
    await this.#utils.migrate()
  }

  async enqueueMany(count: number): Promise<void> {
    const isKeyed = this.#place.variant === 'keyed'
    for (const payloads of this.#payloads.chunksOf(count)) {
      await this.#opened.addJobs(
        payloads.map((payload) => ({
          identifier: 'noop',
          payload,
          ...(isKeyed ? { jobKey: payload.invoiceId } : {}),
        })),
      )
    }
  }

  async enqueueOne(): Promise<void> {
    await this.#opened.addJob('noop', this.#payloads.one())
  }

  async work(onJobs: (count: number) => void): Promise<void> {
    this.#runner = await run({
      preset: {
        worker: {
          connectionString: this.#place.url,
          schema,
          concurrentJobs,
          maxPoolSize: connectionCount,
          localQueue: { size: localQueueSize },
          completeJobBatchDelay: batchDelayMs,
          failJobBatchDelay: batchDelayMs,
        },
      },
      noHandleSignals: true,
      taskList: { noop: async () => onJobs(1) },
    })
  }

  async rest(): Promise<void> {
    await this.#runner?.stop()
  }

  async leftCount(): Promise<number> {
    return this.#opened.withPgClient(async (client) => {
      const { rows } = await client.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${schema}._private_jobs`)
      return rows[0]?.n ?? Number.NaN
    })
  }

  async close(): Promise<void> {
    await this.#utils?.release()
  }
}
