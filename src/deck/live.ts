/**
 * What changes by the second: read once for all clients of this process, and only while one of them listens or asks.
 *
 * A client is a stream of server-sent events. It is sent the newest state and never a backlog: one that does not read
 * what it was sent is cut off, and its EventSource comes back by itself. A comment every few seconds keeps proxies from
 * closing a quiet stream.
 */
import { claimOutcomes } from '../core/counters.ts'
import type { CounterRow } from '../core/counters.ts'
import type { QueueRow, WorkerRow } from '../core/inspector.ts'
import type { Runtime, Timer } from '../core/runtime.ts'
import { queueHealth } from '../engine/health.ts'
import { DeckRefusal, refusalOf } from './problem.ts'
import type { DeckReads } from './reads.ts'
import { isSilent } from './views/workers.ts'
import type { LiveEvent, LiveState } from './wire.ts'

export interface LiveFacts {
  readonly nowMs: number
  readonly queues: readonly QueueRow[]
  readonly workers: readonly WorkerRow[]
  readonly stats: readonly CounterRow[]
  readonly review: { readonly count: number; readonly isExact: boolean }
}

export interface LiveOptions {
  readonly reads: DeckReads
  readonly runtime: Runtime
  readonly maxStreams: number
  readonly onError: (error: unknown) => void
}

const pollMs = 2_000
const heartbeatMs = 15_000
/** Chunks that may wait for a client: it has missed this many polls. */
const maxBacklog = 8
const maxReviewCount = 1_000

type Controller = ReadableStreamDefaultController<Uint8Array>

export class Live {
  readonly #options: LiveOptions
  readonly #clients = new Set<Controller>()
  readonly #encoder = new TextEncoder()
  #timer: Timer | undefined
  #facts: { readonly answer: Promise<LiveFacts>; readonly askedMs: number } | undefined
  #last: LiveEvent | undefined
  #eventId = 0
  #sentMs = 0
  #isClosed = false

  constructor(options: LiveOptions) {
    this.#options = options
  }

  get clientCount(): number {
    return this.#clients.size
  }

  /** Not older than one poll. */
  facts(): Promise<LiveFacts> {
    const nowMs = this.#options.runtime.clock.monotonicMs()
    if (this.#facts === undefined || nowMs - this.#facts.askedMs >= pollMs) {
      const answer = readFacts(this.#options)
      this.#facts = { answer, askedMs: nowMs }
      // A failure is told to whoever asked, and the next one asks anew.
      answer.catch(() => {
        if (this.#facts?.answer === answer) this.#facts = undefined
      })
    }
    return this.#facts.answer
  }

  open(): ReadableStream<Uint8Array> {
    if (this.#isClosed || this.#clients.size >= this.#options.maxStreams) {
      throw new DeckRefusal(503, 'too-many-streams', 'Too many pages are open on this Deck. It is tried again.', {
        'retry-after': '10',
      })
    }
    let own: Controller | undefined
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          own = controller
          this.#clients.add(controller)
          // Bytes at once, so that the page knows that it is connected; then what was said last.
          controller.enqueue(this.#encoder.encode(`retry: ${pollMs + 1_000}\n\n`))
          if (this.#timer === undefined) this.#begin()
          else if (this.#last !== undefined) controller.enqueue(this.#frame(this.#last))
        },
        cancel: () => {
          if (own !== undefined) this.#drop(own)
        },
      },
      { highWaterMark: maxBacklog },
    )
  }

  close(): void {
    this.#isClosed = true
    for (const client of this.#clients) this.#drop(client, true)
  }

  #drop(client: Controller, mayClose = false): void {
    this.#clients.delete(client)
    if (this.#clients.size === 0) {
      this.#timer?.cancel()
      this.#timer = undefined
    }
    if (!mayClose) return
    try {
      client.close()
    } catch {
      // It ended by itself meanwhile.
    }
  }

  /** What was said last is old by now, however alike. */
  #begin(): void {
    this.#last = undefined
    this.#poll()
  }

  #poll(): void {
    const { runtime } = this.#options
    // The place of the next turn is taken at once: nobody starts a second loop while this one reads.
    this.#timer = runtime.scheduler.after(
      pollMs,
      () => {
        this.#poll()
      },
      { keepAlive: false },
    )
    this.#read().then(
      (event) => {
        this.#broadcast(event)
      },
      (error: unknown) => {
        this.#options.onError(error)
      },
    )
  }

  async #read(): Promise<LiveEvent> {
    try {
      return { kind: 'state', state: stateOf(await this.facts()) }
    } catch (error) {
      this.#options.onError(error)
      return { kind: 'trouble', title: refusalOf(error).message }
    }
  }

  #broadcast(event: LiveEvent): void {
    const nowMs = this.#options.runtime.clock.monotonicMs()
    const isNew = !isSame(event, this.#last)
    if (!isNew && nowMs - this.#sentMs < heartbeatMs) return
    this.#sentMs = nowMs
    this.#last = event
    this.#eventId += isNew ? 1 : 0
    const bytes = isNew ? this.#frame(event) : this.#encoder.encode(': still here\n\n')
    for (const client of this.#clients) this.#send(client, bytes)
  }

  #send(client: Controller, bytes: Uint8Array): void {
    // Zero or less: what was sent before still waits for the client to read it.
    if ((client.desiredSize ?? 0) <= 0) {
      this.#drop(client)
      client.error(new DeckRefusal(503, 'too-slow', 'This client does not read its events.'))
      return
    }
    try {
      client.enqueue(bytes)
    } catch {
      this.#drop(client)
    }
  }

  #frame(event: LiveEvent): Uint8Array {
    return this.#encoder.encode(`id: ${this.#eventId}\ndata: ${JSON.stringify(event)}\n\n`)
  }
}

/** The time of reading alone is no news. */
function isSame(a: LiveEvent, b: LiveEvent | undefined): boolean {
  const text = (event: LiveEvent | undefined): string =>
    JSON.stringify(event?.kind === 'state' ? { ...event.state, atMs: 0 } : event)
  return b !== undefined && text(a) === text(b)
}

async function readFacts({ reads, runtime }: LiveOptions): Promise<LiveFacts> {
  const [queues, workers, stats, review] = await Promise.all([
    reads.queues(),
    reads.workers(),
    reads.stats(),
    reads.count({ pillar: 'dlq', filter: { inReview: true }, limit: maxReviewCount }),
  ])
  return { nowMs: runtime.clock.nowMs(), queues, workers, stats, review }
}

export function stateOf({ nowMs, queues, workers, stats, review }: LiveFacts): LiveState {
  const sum = (of: (queue: QueueRow) => number): number => queues.reduce((total, queue) => total + of(queue), 0)
  const total = (name: string, label?: string): number =>
    stats.reduce(
      (all, row) => (row.name === name && (label === undefined || row.label === label) ? all + row.value : all),
      0,
    )
  const silent = workers.filter((worker) => isSilent(worker, nowMs))
  const health = queueHealth(queues)
  const lags = queues.filter(({ paused }) => !paused).flatMap(({ lagMs }) => lagMs ?? [])
  return {
    atMs: nowMs,
    scheduledCount: sum((queue) => queue.scheduledCount),
    pendingCount: sum((queue) => queue.pendingCount),
    fetchedCount: sum((queue) => queue.fetchedCount),
    processingCount: sum((queue) => queue.processingCount),
    deadCount: sum((queue) => queue.deadCount),
    reviewCount: review.count,
    oldestLagMs: lags.length === 0 ? null : Math.max(...lags),
    workerCount: workers.length - silent.length,
    silentWorkerCount: silent.length,
    pausedQueueCount: queues.filter(({ paused }) => paused).length,
    totals: { completed: total('jobs.completed'), dead: total('jobs.dlq'), skipped: total('jobs.skipped') },
    claims: Object.fromEntries(claimOutcomes.map((outcome) => [outcome, total('idempotency.claims', outcome)])),
    health: health.state,
    healthReasons: health.reasons.map(({ text }) => text),
  }
}
