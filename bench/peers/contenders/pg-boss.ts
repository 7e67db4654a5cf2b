/**
 * pg-boss, woken by NOTIFY, with 500 jobs a handler call: where a call gets one job it does not fetch again at once but
 * waits for its next poll, so that a drain is one of its polling interval alone. It keeps finished jobs for a week.
 */
import { PgBoss } from 'pg-boss'
import { connectionCount, Payloads, type Contender, type Place } from '../contender.ts'

const queue = 'noop'
const batchSize = 500
const localConcurrency = 4

export class PgBossContender implements Contender {
  readonly #place: Place
  readonly #payloads = new Payloads()
  readonly #boss: PgBoss

  constructor(place: Place) {
    this.#place = place
    this.#boss = new PgBoss({ connectionString: place.url, max: connectionCount, useListenNotify: true })
    this.#boss.on('error', (error) => process.stderr.write(`pg-boss: ${String(error)}\n`))
  }

  async open(): Promise<void> {
    await this.#boss.start()
    if ((await this.#boss.getQueue(queue)) === null) await this.#boss.createQueue(queue, { notify: true })
  }

  async enqueueMany(count: number): Promise<void> {
    const isKeyed = this.#place.variant === 'keyed'
    for (const payloads of this.#payloads.chunksOf(count)) {
      await this.#boss.insert(
        queue,
        payloads.map((data) => ({ data, ...(isKeyed ? { singletonKey: data.invoiceId } : {}) })),
      )
    }
  }

  async enqueueOne(): Promise<void> {
    await this.#boss.send(queue, this.#payloads.one())
  }

  async work(onJobs: (count: number) => void): Promise<void> {
    const options = {
      batchSize,
      localConcurrency,
      burstWhenBatchFull: true,
      pollingIntervalSeconds: 0.5,
    }
    await this.#boss.work(queue, options, async (jobs) => onJobs(jobs.length))
  }

  async rest(): Promise<void> {
    await this.#boss.offWork(queue, { wait: true })
  }

  async leftCount(): Promise<number> {
    const sql = `SELECT count(*)::int AS n FROM pgboss.job WHERE name = '${queue}' AND state < 'completed'`
    const { rows } = await this.#boss.getDb().executeSql(sql)
    return (rows[0] as { readonly n: number } | undefined)?.n ?? Number.NaN
  }

  async close(): Promise<void> {
    await this.#boss.stop({ graceful: false })
  }
}
