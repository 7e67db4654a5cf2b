/** Manual review: the printer jams, nobody knows what it printed, and a person looks into the tray. */
import { createChokaQ, type ChokaQ, type Storage } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { createFakeRuntime, drain, type FakeRuntime } from 'chokaq/testing'
import { createWorker } from 'chokaq/worker'
import { whenStarted, type Print } from '../start.ts'
import { printLetter } from './contract.ts'
import { printHandler, type Printer } from './handler.ts'

/** Stands for the printer: its first letter comes out while its cable is pulled; the second one never leaves it. */
export class JammingPrinter implements Printer {
  readonly tray: string[] = []
  calls = 0

  async isReady(): Promise<boolean> {
    return true
  }

  async print(text: string): Promise<{ sheet: number }> {
    this.calls += 1
    if (this.calls === 2) throw new Error('paper jam')
    this.tray.push(text)
    if (this.calls === 1) throw new Error('the connection broke')
    return { sheet: this.tray.length }
  }
}

/** What a person does with `chokaq review`: looks at the world, then says what is true. */
export async function decideByTray(chokaq: ChokaQ, tray: readonly string[], print: Print): Promise<void> {
  for (const review of await chokaq.reviews.list({ type: printLetter.type })) {
    const by = { actor: 'ann', note: 'looked into the tray', revision: review.revision }
    const sheet = tray.indexOf(review.key) + 1
    if (sheet > 0) await chokaq.reviews.adopt(review.id, { sheet }, by)
    else await chokaq.reviews.retry(review.id, by)
    print(`${review.key}: ${sheet > 0 ? 'it is in the tray, adopted' : 'it is not there, printed again'}`)
  }
}

/** On virtual time, so that nobody waits for retries. */
export async function main(
  storage: Storage,
  print: Print = console.log,
  runtime: FakeRuntime = createFakeRuntime(),
): Promise<void> {
  const chokaq = createChokaQ({ storage, runtime })
  const printer = new JammingPrinter()
  await chokaq.enqueue(printLetter, { letterId: 'letter-1', text: 'letter-1' }, { priority: 1 })
  await chokaq.enqueue(printLetter, { letterId: 'letter-2', text: 'letter-2' })
  const work = async (): Promise<void> => {
    const worker = createWorker({ chokaq, handlers: [printHandler(printer)], concurrency: 1 })
    await drain(worker, { runtime })
    await runtime.complete(worker.stop())
  }
  await work()
  print(`${(await chokaq.reviews.list()).length} letters wait for a person`)
  const again = await chokaq.enqueue(printLetter, { letterId: 'letter-1', text: 'letter-1' })
  print(`a duplicate is told: ${again.outcome}`)
  await decideByTray(chokaq, printer.tray, print)
  await work()
  print(`in the tray: ${printer.tray.join(', ')}`)
  await chokaq.close()
}

whenStarted(import.meta.url, (path) => main(sqlite(path)))
