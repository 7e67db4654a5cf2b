/**
 * One incarnation of a worker: an id in the database, the leases taken under it, and the loops that keep it alive.
 *
 *   begin --> working --(stop)--> draining --> ended
 *                     --(fence: beats failed, or declared dead)--> fenced: every lease is lost; the worker makes a new one
 *
 * A job goes through it as: delivered → buffered → gate (payload, claim, start) → running (slot) → settling → gone. A
 * handler's slot is free again when the handler has ended; its settle goes on beside the next handler.
 */
import { ChokaQError } from '../core/errors.ts'
import { describeFailure } from '../core/failure.ts'
import type { FetchedJob } from '../core/job.ts'
import type { AbortKind } from '../core/outcome.ts'
import type { SettleAction } from '../core/storage.ts'
import { withDeadline } from './deadline.ts'
import { FetchLoop } from './fetch/fetch-loop.ts'
import { Lookout } from './fetch/lookout.ts'
import { Gate } from './fetch/gate.ts'
import { InHand, type HeldJob } from './in-hand.ts'
import { Heart } from './process/heart.ts'
import { Settler } from './settle/settler.ts'
import { WorkerAttempt, type AttemptOutcome } from './worker-attempt.ts'
import type { AttemptIdentity, WorkerCore } from './worker-core.ts'
import { notRun, type JobEnd } from './worker-end.ts'
import type { RunnableGate } from './worker-services.ts'
import type { RegisteredType } from './worker-types.ts'

export class Incarnation {
  readonly id: string
  readonly #core: WorkerCore
  readonly #inHand = new InHand()
  readonly #gate: Gate
  readonly #settler: Settler
  readonly #heart: Heart
  /** Turns when a fetch begins or ends, or a handler has left its slot and may have made room for one. */
  readonly #lookout: Lookout
  readonly #fetchLoop: FetchLoop
  #buffer: HeldJob[] = []
  #idleWaiters: (() => void)[] = []
  #stopping = false
  #fenced = false
  #ended = false
  /** Set while all slots are busy for long: nothing is fetched ahead only to be given back. */
  #crowded = false
  #processedCount = 0

  constructor(core: WorkerCore, onFenced: () => void) {
    this.#core = core
    const { driver, runtime, events, config } = core
    this.id = runtime.newId()
    const stop = (): boolean => this.#fenced || this.#ended
    this.#gate = new Gate({ driver, runtime, events, config, stop })
    this.#settler = new Settler({ driver, runtime, events, config, stop })
    this.#heart = new Heart({
      driver,
      runtime,
      events,
      config,
      workerId: this.id,
      load: () => ({
        concurrency: core.slots.limit,
        runningCount: core.slots.runningCount,
        bufferedCount: this.#buffer.length,
      }),
      inHand: () => this.#inHand.leases(),
      onCancel: (ids) => {
        this.#cancel(ids)
      },
      onFence: (why) => {
        this.#fence(why)
        onFenced()
      },
    })
    const looks = { policies: core.types.policies, deadlineMs: config.statementDeadlineMs }
    this.#lookout = new Lookout({ driver, runtime, workerId: this.id, ...looks })
    this.#fetchLoop = new FetchLoop({
      scheduler: runtime.scheduler,
      random: () => runtime.random(),
      queues: core.queues,
      pollMs: config.pollMs,
      room: () => this.#room(),
      busy: (queues) => this.#lookout.busy(queues),
      fetch: (queue, limit) => this.#lookout.fetch(queue, limit),
      deliver: (jobs) => {
        this.#deliver(jobs)
      },
      onError: (error) => {
        events.emit({ name: 'storage.failed', during: 'fetch', failure: describeFailure(error) })
      },
    })
  }

  get fenced(): boolean {
    return this.#fenced
  }

  get runningCount(): number {
    return this.#inHand.count('running')
  }

  /** How long ago the loops turned; a full worker has no reason to fetch. */
  get vitals(): { readonly sinceBeatMs: number; readonly sinceFetchMs: number | undefined } {
    const { sinceBeatMs } = this.#heart
    const { turnedMs } = this.#lookout
    if (turnedMs === undefined || this.#room() === 0) return { sinceBeatMs, sinceFetchMs: undefined }
    return { sinceBeatMs, sinceFetchMs: this.#core.runtime.clock.monotonicMs() - turnedMs }
  }

  /** Puts this incarnation's row into the database. */
  async register(): Promise<void> {
    const { driver, runtime, config, types, queues, name, slots } = this.#core
    const sentMs = runtime.clock.monotonicMs()
    const call = driver.registerWorker({
      id: this.id,
      name,
      identity: runtime.processes.self(),
      queues,
      types: types.policies.map(({ type }) => type),
      concurrency: slots.limit,
    })
    // No lease depends on it yet, so it may be slow; but what comes later than a fence would have to stop at once.
    await withDeadline(runtime.scheduler, config.fenceAfterMs, 'registerWorker', call)
    this.#heart.registered(sentMs)
  }

  /** Starts the loops: beats and fetches. */
  begin(): void {
    this.#heart.start()
    this.#fetchLoop.start()
  }

  /** There may be work, a free slot, or room. */
  kick(): void {
    this.#dispatch()
    this.#fetchLoop.kick()
  }

  /** Buffered rows that waited a heartbeat go back: their fast start would grow old, and another worker may be free. */
  releaseStale(): void {
    const before = this.#core.runtime.clock.monotonicMs() - this.#core.config.heartbeatMs
    const stale = this.#buffer.filter((held) => held.heldSinceMs < before)
    if (stale.length === 0) return
    this.#crowded = true
    this.#buffer = this.#buffer.filter((held) => held.heldSinceMs >= before)
    for (const held of stale) void this.#giveUp(held, { kind: 'release' }, 'buffered too long')
  }

  /** One round without loops: beat, fetch, run all, settle. Gives the number of jobs that were settled. */
  async tick(): Promise<number> {
    await this.#heart.beat()
    if (this.#fenced) return 0
    const before = this.#processedCount
    await this.#fetchLoop.once()
    await this.#idle()
    return this.#processedCount - before
  }

  /** Drains: nothing new, buffered rows back, running handlers get the grace and then their signal. */
  async end(options: { readonly force: boolean }): Promise<void> {
    const { config } = this.#core
    this.#stopping = true
    const fetched = this.#fetchLoop.stop()
    for (const held of this.#buffer.splice(0)) void this.#giveUp(held, { kind: 'release' }, 'shutdown')
    if (!options.force) await this.#idleWithin(config.shutdownGraceMs)
    this.abortAll('shutdown')
    await fetched
    await this.#idleWithin(config.abortGraceMs + config.statementDeadlineMs)
    this.#heart.stop()
    await Promise.all([this.#heart.quiet(), this.#retire()])
    // What is still offered to a storage that does not answer is left to the rescue.
    this.#ended = true
  }

  async #retire(): Promise<void> {
    if (this.#fenced || this.#inHand.size > 0) return
    const { runtime, config, driver, events } = this.#core
    try {
      const call = driver.retireWorker(this.id)
      await withDeadline(runtime.scheduler, config.statementDeadlineMs, 'retireWorker', call)
    } catch (error) {
      // The row is then found dead by its silence; nothing is owned under it.
      events.emit({ name: 'storage.failed', during: 'retireWorker', failure: describeFailure(error) })
    }
  }

  abortAll(by: AbortKind): void {
    for (const held of this.#inHand.all()) held.abort?.(by)
  }

  // ---- fetch

  #room(): number {
    if (this.#stopping || this.#fenced || this.#core.slots.clogged) return 0
    const { prefetch } = this.#core.config
    const limit = Math.min(prefetch, Math.max(1, 2 * this.#core.slots.limit))
    // The outcomes of one buffer may be under way beside the next fetch; with more than that the storage lags behind.
    const laggingCount = Math.max(0, this.#inHand.count('settling') - limit)
    const taken = this.#buffer.length + this.#inHand.count('gate') + laggingCount
    if (this.#crowded) return Math.max(0, this.#core.slots.free - this.#buffer.length)
    const room = limit - taken
    // Small fetches cost as much as large ones: wait until half of the buffer is free.
    return room * 2 >= limit ? room : 0
  }

  #deliver(jobs: readonly FetchedJob[]): void {
    // A fetch that answers after the fence took leases under a dead incarnation: rescue gives them back.
    if (this.#fenced) return
    const heldSinceMs = this.#core.runtime.clock.monotonicMs()
    for (const job of jobs) {
      const held: HeldJob = {
        job,
        workerId: this.id,
        heldSinceMs,
        phase: 'buffered',
        inSlot: false,
        cancelRequested: false,
        ran: false,
        abort: undefined,
      }
      this.#inHand.add(held)
      if (this.#stopping) void this.#giveUp(held, { kind: 'release' }, 'shutdown')
      else this.#buffer.push(held)
    }
    this.#dispatch()
  }

  #dispatch(): void {
    const { slots } = this.#core
    while (this.#buffer.length > 0 && slots.free > 0) {
      const at = this.#buffer.findIndex((held) => slots.mayRun(held.job))
      if (at < 0) return
      const held = this.#buffer[at] as HeldJob
      if (at === 0) this.#buffer.shift()
      else this.#buffer.splice(at, 1)
      void this.#run(held)
    }
  }

  // ---- one job

  async #run(held: HeldJob): Promise<void> {
    this.#core.slots.take(held.job)
    held.inSlot = true
    try {
      // What the handler needed is free again while its outcome is under way.
      const end = await this.#pass(held)
      if (end !== undefined) await this.#settle(held, end)
    } catch (error) {
      this.#core.events.emit({ name: 'storage.failed', during: 'run', failure: describeFailure(error) })
    } finally {
      this.#leaveSlot(held)
      this.#gone(held)
    }
  }

  #leaveSlot(held: HeldJob): void {
    if (!held.inSlot) return
    held.inSlot = false
    this.#core.slots.give(held.job)
    this.#crowded = false
    this.#lookout.turned()
  }

  /** Through the gate and the handler. Undefined where there is nothing to settle. */
  async #pass(held: HeldJob): Promise<JobEnd | undefined> {
    const { job } = held
    const type = this.#core.types.get(job.type)
    if (type === undefined) throw new ChokaQError('CHOKAQ_ASSERTION', { what: `fetched unregistered ${job.type}` })
    this.#inHand.move(held, 'gate')
    const passing = this.#gate.pass(job, type.handler, type.policy)
    const gate = passing instanceof Promise ? await passing : passing
    if (gate.kind === 'run' && this.#mayStart(held)) {
      const outcome = await this.#begin(held, type, gate).run()
      return this.#endOf(held, gate, outcome)
    }
    if (gate.kind === 'lost') {
      this.#reportLost(held, 'start')
      return undefined
    }
    this.#leaveSlot(held)
    return notRun(held, gate, this.#stopping)
  }

  /** The last look before a handler is called: after a stall the lease may be somebody else's by now. */
  #mayStart(held: HeldJob): boolean {
    return !this.#stopping && !this.#fenced && this.#heart.confirmed && !held.cancelRequested
  }

  #begin(held: HeldJob, type: RegisteredType, gate: RunnableGate): WorkerAttempt {
    const of = this.#ofAttempt(held.job, gate.attempt)
    held.ran = true
    this.#inHand.move(held, 'running')
    const confirmed = (): boolean => !this.#fenced && this.#heart.confirmed
    const attempt = new WorkerAttempt(this.#core, of, held.job, type, gate, confirmed)
    held.abort = (by) => {
      attempt.abort(by)
    }
    return attempt
  }

  #endOf(held: HeldJob, gate: RunnableGate, outcome: AttemptOutcome): JobEnd | undefined {
    const { runtime, events, slots } = this.#core
    const { action, durationMs, abandoned } = outcome
    held.abort = undefined
    runtime.faults.reach('handler-returned')
    // A suspect keeps its place until its outcome is durable: the next suspect may take this process down, and the crash
    // would be charged to this one, too.
    if (!held.job.suspect || abandoned !== undefined) this.#leaveSlot(held)
    if (abandoned !== undefined) {
      slots.abandon(abandoned, () => {
        this.kick()
      })
      const of = this.#ofAttempt(held.job, gate.attempt)
      events.emit({ name: 'job.abandoned', ...of, abandonedCount: slots.abandonedCount })
    }
    this.#dispatch()
    this.#fetchLoop.kickSoon()
    return action === undefined ? undefined : { action, attempt: gate.attempt, durationMs, why: '' }
  }

  async #settle(held: HeldJob, { action, attempt, durationMs, why }: JobEnd): Promise<void> {
    this.#inHand.move(held, 'settling')
    const { job } = held
    const keyed = this.#core.types.get(job.type)?.policy.keyed ?? false
    await this.#settler.settle(action, { job, workerId: this.id, attempt, keyed, durationMs, why })
    this.#inHand.remove(held)
    this.#processedCount += 1
  }

  /** A job that waits in the buffer leaves without having run. */
  async #giveUp(held: HeldJob, action: SettleAction, why: string): Promise<void> {
    try {
      await this.#settle(held, { action, attempt: held.job.attempt, durationMs: 0, why })
    } catch (error) {
      this.#core.events.emit({ name: 'storage.failed', during: action.kind, failure: describeFailure(error) })
    } finally {
      this.#gone(held)
    }
  }

  /**
   * Out of hand. A row that was not settled is disowned, at no cost; but where its handler ran, that would hide the run,
   * so it stays in hand until this worker ends and the rescue judges it as a crash.
   */
  #gone(held: HeldJob): void {
    if (held.ran && !this.#fenced) this.#inHand.move(held, 'stranded')
    else this.#inHand.remove(held)
    if (this.#inHand.idle) for (const wake of this.#idleWaiters.splice(0)) wake()
    this.kick()
  }

  // ---- cancel, fence, idle

  #cancel(jobIds: readonly string[]): void {
    for (const jobId of jobIds) {
      const held = this.#inHand.byJobId(jobId)
      if (held === undefined) continue
      held.cancelRequested = true
      held.abort?.('cancel')
      const at = held.phase === 'buffered' ? this.#buffer.indexOf(held) : -1
      if (at < 0) continue
      this.#buffer.splice(at, 1)
      void this.#giveUp(held, { kind: 'cancel', hold: false }, '')
    }
  }

  #fence(why: 'beats-failed' | 'declared-dead'): void {
    this.#fenced = true
    void this.#fetchLoop.stop()
    const lost = this.#inHand.all()
    this.#core.events.emit({ name: 'worker.fenced', workerId: this.id, why, lostCount: lost.length })
    for (const held of lost) this.#reportLost(held, 'fence')
    for (const held of this.#buffer.splice(0)) this.#gone(held)
    this.abortAll('lease-lost')
  }

  #reportLost(held: HeldJob, at: 'start' | 'fence'): void {
    this.#core.events.emit({ name: 'job.lease_lost', ...this.#ofAttempt(held.job, held.job.attempt), at })
  }

  #ofAttempt(job: FetchedJob, attempt: number): AttemptIdentity {
    return { jobId: job.lease.jobId, type: job.type, queue: job.queue, workerId: this.id, attempt }
  }

  #idle(): Promise<void> {
    if (this.#inHand.idle) return Promise.resolve()
    return new Promise((resolve) => this.#idleWaiters.push(resolve))
  }

  async #idleWithin(limitMs: number): Promise<void> {
    if (this.#inHand.idle) return
    await new Promise<void>((resolve) => {
      const timer = this.#core.runtime.scheduler.after(limitMs, resolve)
      this.#idleWaiters.push(() => {
        timer.cancel()
        resolve()
      })
    })
  }
}
