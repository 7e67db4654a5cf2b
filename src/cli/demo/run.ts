/** One run: starts the processes, sends the deliveries, kills, waits for the end, and compares the books. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { assert } from '../../core/errors.ts'
import { formatMs } from '../../core/duration.ts'
import { failureText } from '../../core/failure.ts'
import { createChokaQ, type ChokaQ } from '../../engine/enqueue/client.ts'
import { account, type Account, type KillFact } from './accounting.ts'
import { DemoProcess, RunFailed } from './child-process.ts'
import { readClaims } from './claims.ts'
import { planDeliveries, type DeliveryPlan } from './deliveries.ts'
import { killFacts, kindOf, readJobs, readRequests, type Rescue } from './evidence.ts'
import { loadExamples } from './examples.ts'
import { Killer, type Kill } from './killer.ts'
import type { FromProvider, ReportedEvent } from './messages.ts'
import { readLedger } from './provider/ledger.ts'
import type { InFlight } from './provider/server.ts'
import { Reviewer, type ReviewDecision } from './reviewer.ts'
import { startReceiver } from './receiver.ts'
import type { Screen } from './screen.ts'
import { Sender } from './sender.ts'
import { deadlineMs, plannedKills, spreadMs } from './settings.ts'
import { ordersAt, setupOf, type ShopPlace, shopVariable, storageAt } from './shop.ts'
import { WorkerPlace } from './worker-place.ts'

export interface RunOptions {
  readonly seed: number
  readonly requestCount: number
  readonly isProtected: boolean
  /** Where jobs and orders are kept; a file in the folder of the run by default. */
  readonly shop?: ShopPlace
}

export interface RunResult {
  readonly account: Account
  readonly kills: readonly KillFact[]
  readonly durationMs: number
}

interface ProviderState {
  readonly chargeCount: number
  readonly inFlight: readonly InFlight[]
  /** Payment attempts with a request at work, also of callers that hung up. */
  readonly working: readonly string[]
}

type RescueEvent = Extract<ReportedEvent, { readonly name: 'job.rescued' }>

const lookMs = 100
const showEveryMs = 200
/** The sender goes on at this pace where kills are late: work must be there for a kill to interrupt it. */
const dripMs = 800

export class Run {
  /** Holds the database, the ledger and what the processes printed. */
  readonly folder: string
  readonly plan: DeliveryPlan
  readonly shop: ShopPlace
  readonly #options: RunOptions
  readonly #screen: Screen
  readonly #abort = new AbortController()
  readonly #rescues: Rescue[] = []
  readonly #startedAtMs = Date.now()
  readonly #kills: Kill[] = []
  readonly #reconciledJobIds = new Set<string>()
  readonly #decisions: ReviewDecision[] = []
  #sentGroups = 0
  #shownAtMs = 0
  #provider: DemoProcess<FromProvider> | undefined
  #providerUrl = ''
  #places: readonly WorkerPlace[] = []

  constructor(options: RunOptions, screen: Screen) {
    this.#options = options
    this.#screen = screen
    this.plan = planDeliveries(options.seed, options.requestCount, loadExamples())
    this.folder = mkdtempSync(join(tmpdir(), 'chokaq-demo-'))
    this.shop = options.shop ?? { kind: 'file', path: this.#path('shop.db') }
  }

  /** Rejects where a process ended by itself, the run took too long, or `stop` was called. Children are gone either way. */
  async execute(): Promise<RunResult> {
    const chokaq = createChokaQ({ storage: storageAt(this.shop) })
    const timer = setTimeout(() => {
      this.stop(new RunFailed('The run did not end in time: jobs are left that nobody finishes.'))
    }, deadlineMs(this.#options.requestCount))
    try {
      return await Promise.race([this.#run(chokaq), aborted(this.#abort.signal)])
    } finally {
      clearTimeout(timer)
      this.#abort.abort()
      await Promise.all([...this.#places, this.#provider].map(async (child) => child?.endNow()))
      await chokaq.close()
    }
  }

  /** Ends the run at once; `execute` rejects with the reason. */
  stop(reason: unknown): void {
    this.#abort.abort(reason)
  }

  async #run(chokaq: ChokaQ): Promise<RunResult> {
    await this.#startProcesses(chokaq)
    const secret = randomUUID()
    const receiver = await startReceiver(chokaq, secret, this.#options.isProtected)
    const sender = new Sender({ url: receiver.url, secret, signal: this.#abort.signal })
    await this.#deliverAndKill(sender, chokaq)
    sender.send(this.plan.settled)
    await sender.allAnswered()
    await this.#drained(chokaq)
    await Promise.all(this.#places.map((place) => place.stop()))
    await this.#provider?.stop()
    await receiver.close()
    return this.#compare(chokaq, sender)
  }

  async #startProcesses(chokaq: ChokaQ): Promise<void> {
    const orders = ordersAt(this.shop)
    await chokaq.ready()
    await orders.createTable()
    await orders.close()
    await this.#startProvider()
    this.#places = ['worker-a', 'worker-b'].map((name) => this.#place(name))
    await Promise.all(this.#places.map((place) => place.start()))
    const processes = [this.#provider, ...this.#places].map((one) => `${one?.name} (pid ${one?.pid})`)
    this.#screen.line(`processes: ${processes.join(', ')}\n`)
  }

  #startProvider(): Promise<void> {
    const setup = {
      seed: this.#options.seed,
      ledger: this.#path('ledger.jsonl'),
      requests: this.#path('requests.jsonl'),
    }
    return new Promise((resolve, reject) => {
      const provider = new DemoProcess<FromProvider>(
        'provider',
        { role: 'provider', setup },
        { folder: this.folder, env: {} },
        ({ port }) => {
          this.#providerUrl = `http://127.0.0.1:${port}`
          resolve()
        },
      )
      this.#provider = provider
      provider.endedByItself().catch((error: Error) => {
        reject(error)
        this.stop(error)
      })
    })
  }

  #place(name: string): WorkerPlace {
    const { shop } = this
    return new WorkerPlace({
      name,
      process: { folder: this.folder, env: shop.kind === 'server' ? { [shopVariable]: shop.url } : {} },
      setup: {
        shop: setupOf(shop),
        providerUrl: this.#providerUrl,
        isProtected: this.#options.isProtected,
      },
      onEvent: (event) => {
        this.#hear(name, event)
      },
      onFailure: (error) => {
        this.stop(error)
      },
    })
  }

  #hear(place: string, event: ReportedEvent): void {
    if (event.name === 'job.rescued') {
      this.#showRescue(place, event)
    } else if (event.name === 'effect.outcome') {
      if (event.outcome === 'reconciled') this.#reconciledJobIds.add(event.jobId)
    } else if (event.name === 'worker.warning') {
      this.#screen.line(`${place} warns: ${event.text}`)
    } else if (event.name === 'storage.failed') {
      this.#screen.line(`${place}: ${event.during} failed: ${failureText(event.failure)}`)
    } else if (event.name === 'worker.fenced') {
      this.#screen.line(`${place} could not confirm its beat and stopped its handlers (${event.why})`)
    }
  }

  async #deliverAndKill(sender: Sender, chokaq: ChokaQ): Promise<void> {
    const { live } = this.plan
    const [, victim] = this.#places
    assert(victim !== undefined, 'the demo has two workers')
    const killer = new Killer({
      place: victim,
      chargesInFlight: async () => (await this.#providerState()).inFlight,
      progress: () => this.#sentGroups / live.length,
      onKill: (kill) => {
        this.#showKill(kill)
      },
      signal: this.#abort.signal,
    })
    const kills = killer.run()
    const work = this.#deliver(sender, killer)
      .then(() => this.#drained(chokaq))
      .then(() => {
        killer.stop()
      })
    await Promise.all([kills, work])
  }

  async #deliver(sender: Sender, killer: Killer): Promise<void> {
    const { live } = this.plan
    const gapMs = spreadMs(this.#options.requestCount) / live.length
    const { signal } = this.#abort
    for (const group of live) {
      const isAhead = this.#sentGroups / live.length > killer.allowedProgress
      while (isAhead && killer.isReplacing) await wait(lookMs, undefined, { signal })
      await wait(isAhead ? dripMs : gapMs, undefined, { signal })
      sender.send(group)
      this.#sentGroups += 1
      await this.#showProgress()
    }
    await sender.allAnswered()
  }

  /** Until nothing waits or runs any more, and nothing waits for a person. */
  async #drained(chokaq: ChokaQ): Promise<void> {
    const reviewer = this.#reviewer(chokaq)
    for (;;) {
      const inReview = await reviewer.look()
      const queues = await chokaq.queues.list()
      const active = queues.map((q) => q.scheduledCount + q.pendingCount + q.fetchedCount + q.processingCount)
      const left = active.reduce((sum, count) => sum + count, inReview)
      if (left === 0) return
      this.#screen.progress(1, `waiting for the last ${plural(left, 'job')}`)
      await wait(lookMs, undefined, { signal: this.#abort.signal })
    }
  }

  #reviewer(chokaq: ChokaQ): Reviewer {
    return new Reviewer({
      chokaq,
      ledger: this.#path('ledger.jsonl'),
      working: async () => (await this.#providerState()).working,
      onDecision: (decision) => void this.#decisions.push(decision),
    })
  }

  async #compare(chokaq: ChokaQ, sender: Sender): Promise<RunResult> {
    const orders = ordersAt(this.shop)
    const kills = killFacts(this.#kills, readRequests(this.#path('requests.jsonl')), this.#rescues)
    const books = account({
      isProtected: this.#options.isProtected,
      sent: sender.log,
      jobs: await readJobs(chokaq),
      charges: readLedger(this.#path('ledger.jsonl')),
      orders: await orders.all(),
      kills,
      reconciledJobIds: [...this.#reconciledJobIds],
      decisions: this.#decisions,
      claims: await readClaims(chokaq),
    })
    await orders.close()
    return { account: books, kills, durationMs: Date.now() - this.#startedAtMs }
  }

  async #providerState(): Promise<ProviderState> {
    const response = await fetch(`${this.#providerUrl}/admin/state`, { signal: this.#abort.signal })
    return (await response.json()) as ProviderState
  }

  async #showProgress(): Promise<void> {
    if (Date.now() - this.#shownAtMs < showEveryMs) return
    this.#shownAtMs = Date.now()
    const { chargeCount } = await this.#providerState()
    const sent = this.#sentGroups / this.plan.live.length
    const charged = `${chargeCount} charges in the ledger`
    this.#screen.progress(sent, `${charged} · ${this.#kills.length} of ${plannedKills} kills`)
  }

  #showKill(kill: Kill): void {
    this.#kills.push(kill)
    const { worker, pid, interrupted } = kill
    const handlers = interrupted.length
    const charges = interrupted.filter(({ type }) => kindOf(type) === 'charge').length
    this.#screen.line(
      `kill ${this.#kills.length}: SIGKILL for ${worker} (pid ${pid}) in the middle of ${plural(handlers, 'handler')} (${charges} charging)`,
    )
  }

  #showRescue(by: string, { workerId, jobId }: RescueEvent): void {
    const atMs = Date.now()
    const kill = this.#kills.find((one) => one.workerId === workerId)
    const isFirst = this.#rescues.every((one) => one.workerId !== workerId)
    this.#rescues.push({ jobId, workerId, atMs })
    if (kill !== undefined && isFirst) {
      this.#screen.line(`        ${by} took its jobs back after ${formatMs(atMs - kill.atMs)}`)
    }
  }

  #path(name: string): string {
    return join(this.folder, name)
  }
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => {
      reject(signal.reason as Error)
    })
  })
}
