/** A worker as a process of its own: what a user's worker.ts is, and a line to the parent that watches it. */
import { createChokaQ } from '../../engine/enqueue/client.ts'
import { createWorker } from '../../engine/worker.ts'
import type { Middleware } from '../../core/ctx.ts'
import type { ChokaQEvent } from '../../core/events.ts'
import { tellParent, untilStopped } from './child-side.ts'
import { demoHandlers } from './handlers.ts'
import type { ReportedEvent, WorkerSetup } from './messages.ts'
import { PaymentClient } from './payment-client.ts'
import { concurrency, crashBudget, leaseTimes } from './settings.ts'
import { ordersAt, type ShopPlace, storageAt } from './shop.ts'

const reported: ReadonlySet<string> = new Set<ReportedEvent['name']>([
  'job.rescued',
  'job.dead',
  'job.lease_lost',
  'worker.declared_dead',
  'worker.warning',
  'worker.fenced',
  'storage.failed',
  'effect.outcome',
])

export async function runWorkerProcess(setup: WorkerSetup, place: ShopPlace): Promise<void> {
  const chokaq = createChokaQ({ storage: storageAt(place), onEvent: report })
  const orders = ordersAt(place)
  const handlers = demoHandlers({
    payments: new PaymentClient(setup.providerUrl, setup.name),
    orders,
    isProtected: setup.isProtected,
  })
  const { name } = setup
  const worker = createWorker({ chokaq, handlers, name, middleware: [watch], concurrency, crashBudget, ...leaseTimes })
  const running = worker.run()
  await Promise.race([running, untilStopped()])
  await worker.stop()
  await running
  await orders.close()
  await chokaq.close()
}

/** The parent kills only what it knows to be running. */
const watch: Middleware = async ({ jobId, type, attempt }, next) => {
  tellParent({ kind: 'begin', jobId, type, attempt })
  try {
    return await next()
  } finally {
    tellParent({ kind: 'end', jobId, attempt })
  }
}

function report(event: ChokaQEvent): void {
  if (event.name === 'worker.started') tellParent({ kind: 'ready', workerId: event.workerId })
  if (isReported(event)) tellParent({ kind: 'event', event })
}

function isReported(event: ChokaQEvent): event is ReportedEvent {
  return reported.has(event.name)
}
