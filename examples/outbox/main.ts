/** An outbox: own rows and messages commit together; messages repeat and overtake each other, and the receiver copes. */
import { createChokaQ, type Storage } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { createFakeRuntime, drain, type FakeRuntime } from 'chokaq/testing'
import { createWorker } from 'chokaq/worker'
import { whenStarted, type Print } from '../start.ts'
import { publishHandler, type Change, type Receiver } from './handler.ts'
import { OrderedReceiver } from './receiver.ts'
import { SqliteShop, type Shop } from './shop.ts'

/** Answers get lost, so each message arrives more than once; and the first message of an order arrives last. */
class BadWeather implements Receiver {
  readonly #receiver: Receiver
  readonly #tries = new Map<string, number>()

  constructor(receiver: Receiver) {
    this.#receiver = receiver
  }

  async deliver(messageId: string, change: Change): Promise<void> {
    const tries = (this.#tries.get(messageId) ?? 0) + 1
    this.#tries.set(messageId, tries)
    const broken = Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
    if (change.sequence === 1 && tries === 1) throw broken
    await this.#receiver.deliver(messageId, change)
    if (tries < 3) throw broken
  }
}

/** On virtual time, so that nobody waits for retries. */
export async function main(
  storage: Storage,
  shop: Shop,
  print: Print = console.log,
  runtime: FakeRuntime = createFakeRuntime(),
): Promise<void> {
  const chokaq = createChokaQ({ storage, runtime })
  await chokaq.ready()
  for (const status of ['placed', 'paid', 'sent']) await shop.change(chokaq, 'order-1', status)
  await shop.change(chokaq, 'order-1', 'lost').catch(() => {
    print('a change was rolled back, and its message with it')
  })

  const receiver = new OrderedReceiver()
  const worker = createWorker({ chokaq, handlers: [publishHandler(new BadWeather(receiver))] })
  await drain(worker, { runtime })
  print(`${receiver.arrivals} arrivals, ${receiver.repeats} of them repeats`)
  print(`applied: ${receiver.applied.join(', ')}; the shop says ${await shop.statusOf('order-1')}`)

  await runtime.complete(worker.stop())
  await chokaq.close()
}

whenStarted(import.meta.url, async (path) => {
  // The shop's tables live in the file of the jobs, so one transaction holds both.
  const shop = new SqliteShop(path)
  await main(sqlite(path), shop)
  shop.close()
})
