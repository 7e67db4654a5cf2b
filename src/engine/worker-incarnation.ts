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
import { decide, type AbortKind, type AttemptEnd } from '../core/outcome.ts'
import type { SettleAction } from '../core/storage.ts'
import { FetchLoop } from './fetch/fetch-loop.ts'
import { Gate, type GateResult } from './fetch/gate.ts'
import { InHand, type HeldJob } from './in-hand.ts'
import { Attempt } from './process/attempt.ts'
import { Heart } from './process/heart.ts'
import { Settler } from './settle/settler.ts'
import type { AttemptIdentity, WorkerCore } from './worker-core.ts'
import { servicesFor } from './worker-services.ts'
import type { RegisteredType } from './worker-types.ts'
import { withDeadline } from './deadline.ts'

type RunnableGate = Extract<GateResult, { kind: 'run' }>

export class Incarnation {
  readonly id: string
  readonly #core: WorkerCore
  readonly #inHand = new InHand()
  readonly #gate: Gate
  readonly #settler: Settler
  readonly #heart: Heart
  readonly #fetchLoop: FetchLoop
  #buffer: HeldJob[] = []
  #idleWaiters: (() => void)[] = []
  #stopping = false
  #fenced = false
  #processedCount = 0

  constructor(core: WorkerCore, onFenced: () => void) {
    this.#core = core
    const { driver, runtime, events, config } = core
    this.id = runtime.newId()
    const stop = (): boolean => this.#fenced
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
    this.#fetchLoop = new FetchLoop({
      scheduler: runtime.scheduler,
      random: () => runtime.random(),
      queues: core.queues,
      pollMs: config.pollMs,
      room: () => this.#room(),
      fetch: (queue, limit) => this.#fetch(queue, limit),
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

  /** Puts this incarnation's row into the database. */
  async register(): Promise<void> {
    const { driver, runtime, config, types, queues, name, slots } = this.#core
    const call = driver.registerWorker({
      id: this.id,
      name,
      identity: runtime.processes.self(),
      queues,
      types: types.policies.map(({ type }) => type),
      concurrency: slots.limit,
    })
    await withDeadline(runtime.scheduler, config.statementDeadlineMs, 'registerWorker', call)
  }

  /** Starts the loops: beats and fetches. */
  begin(): void {
    this.#heart.start()
    this.#fetchLoop.start()
  }

  kick(): void {
    this.#fetchLoop.kick()
  }

  /** Buffered rows that waited a heartbeat go back: their fast start would grow old, and another worker may be free. */
  releaseStale(): void {
    const before = this.#core.runtime.clock.monotonicMs() - this.#core.config.heartbeatMs
    const stale = this.#buffer.filter((held) => held.heldSinceMs < before)
    if (stale.length === 0) return
    this.#buffer = this.#buffer.filter((held) => held.heldSinceMs >= before)
    for (const held of stale) void this.#release(held, 'buffered too long')
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
    const { runtime, config, driver, events } = this.#core
    this.#stopping = true
    this.#fetchLoop.stop()
    for (const held of this.#buffer.splice(0)) void this.#release(held, 'shutdown')
    if (!options.force) await this.#idleWithin(config.shutdownGraceMs)
    this.abortAll('shutdown')
    await this.#idleWithin(config.abortGraceMs + config.statementDeadlineMs)
    this.#heart.stop()
    if (this.#fenced || this.#inHand.size > 0) return
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
    const taken = this.#buffer.length + this.#inHand.count('gate') + this.#inHand.count('settling')
    const room = limit - taken
    // Small fetches cost as much as large ones: wait until half of the buffer is free.
    return room * 2 >= limit ? room : 0
  }

  async #fetch(queue: string, limit: number): Promise<readonly FetchedJob[]> {
    const { driver, runtime, config, types } = this.#core
    const call = driver.fetch({ workerId: this.id, queue, limit, policies: types.policies })
    return withDeadline(runtime.scheduler, config.statementDeadlineMs, 'fetch', call)
  }

  #deliver(jobs: readonly FetchedJob[]): void {
    // A fetch that answers after the fence took leases under a dead incarnation: rescue gives them back.
    if (this.#fenced) return
    const heldSinceMs = this.#core.runtime.clock.monotonicMs()
    for (const job of jobs) {
      const held: HeldJob = { job, workerId: this.id, heldSinceMs, phase: 'buffered', abort: undefined }
      this.#inHand.add(held)
      if (this.#stopping) void this.#release(held, 'shutdown')
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
    const { slots, events, types } = this.#core
    const { job } = held
    slots.take(job)
    let inSlot = true
    const leaveSlot = (): void => {
      if (inSlot) slots.give(job)
      inSlot = false
    }
    try {
      const type = types.get(job.type)
      if (type === undefined) throw new ChokaQError('CHOKAQ_ASSERTION', { what: `fetched unregistered ${job.type}` })
      this.#inHand.move(held, 'gate')
      const gate = await this.#gate.pass(job, type.handler, type.policy)
      if (gate.kind === 'run' && !this.#stopping && !this.#fenced) await this.#process(held, type, gate, leaveSlot)
      else if (gate.kind === 'lost') this.#reportLost(held, 'start')
      else {
        leaveSlot()
        const action: SettleAction = gate.kind === 'settle' ? gate.action : { kind: 'release' }
        await this.#settle(held, action, type, job.attempt, 0, gate.kind === 'settle' ? 'paused' : 'shutdown')
      }
    } catch (error) {
      // The row stays owned: disown, or the rescue after this worker's end, takes it back.
      events.emit({ name: 'storage.failed', during: 'run', failure: describeFailure(error) })
    } finally {
      leaveSlot()
      this.#gone(held)
    }
  }

  async #process(held: HeldJob, type: RegisteredType, gate: RunnableGate, leaveSlot: () => void): Promise<void> {
    const { runtime, config, events, slots, middleware } = this.#core
    const { job } = held
    const of = this.#ofAttempt(job, gate.attempt)
    const startedMs = runtime.clock.monotonicMs()
    const startedAtMs = runtime.clock.nowMs()
    if (events.active) {
      const queueLagMs = Math.max(0, startedAtMs - job.runAtMs)
      events.emit({ name: 'job.started', ...of, queueLagMs, crashCount: job.crashCount })
    }
    const { timeoutMs } = type.policy
    const facts = {
      job,
      ...pickKey(gate),
      attempt: gate.attempt,
      payload: gate.payload,
      deadlineMs: startedAtMs + timeoutMs,
    }
    const attempt = new Attempt(facts, {
      scheduler: runtime.scheduler,
      handler: type.handler,
      middleware,
      timeoutMs,
      abortGraceMs: config.abortGraceMs,
      services: servicesFor(this.#core, job, type, (message, fields) => {
        events.emit({ name: 'job.log', ...of, message, fields })
      }),
      onAbort: (by) => {
        events.emit({ name: 'job.aborted', ...of, by })
      },
    })
    this.#inHand.move(held, 'running')
    held.abort = (by) => {
      attempt.abort(by)
    }
    const result = await attempt.run()
    held.abort = undefined
    runtime.faults.reach('handler-returned')
    leaveSlot()
    if (result.kind === 'abandoned') {
      slots.abandon(result.ended, () => {
        this.#dispatch()
        this.kick()
      })
      events.emit({ name: 'job.abandoned', ...of, abandonedCount: slots.abandonedCount })
    }
    this.#dispatch()
    const end = result.kind === 'completed-in-transaction' ? await this.#readBack(held) : result.end
    const durationMs = runtime.clock.monotonicMs() - startedMs
    const action = end === undefined ? undefined : this.#decide(end, type, job, gate)
    if (action !== undefined) await this.#settle(held, action, type, gate.attempt, durationMs, 'unstarted')
    else if (end === undefined) this.#reportCompleted(of, type, durationMs)
  }

  #decide(end: AttemptEnd, type: RegisteredType, job: FetchedJob, gate: RunnableGate): SettleAction | undefined {
    const { runtime, client } = this.#core
    const nowMs = runtime.clock.nowMs()
    return decide(end, {
      failureCount: job.failureCount,
      sinceFirstStartMs: Math.max(0, nowMs - gate.firstStartedAtMs),
      whenInterrupted: type.handler.whenInterrupted,
      retry: type.handler.retry,
      markerLifeMs: type.policy.markerLifeMs,
      keep: type.handler.keepsCompleted ? { kind: 'full' } : { kind: 'stub', forMs: client.resendForMs },
      random: runtime.random(),
      nowMs,
    })
  }

  /** Did the handler's own transaction commit? Only the database knows; undefined means that it did. */
  async #readBack(held: HeldJob): Promise<AttemptEnd | undefined> {
    const { driver } = this.#core
    const { jobId, token } = held.job.lease
    const record = await driver.inspector.get(jobId)
    if (record?.pillar === 'archive' && record.token === token) return undefined
    return { kind: 'threw', thrown: new ChokaQError('CHOKAQ_COMPLETE_ROLLED_BACK', { jobId }) }
  }

  async #settle(
    held: HeldJob,
    action: SettleAction,
    type: RegisteredType | undefined,
    attempt: number,
    durationMs: number,
    why: string,
  ): Promise<void> {
    this.#inHand.move(held, 'settling')
    const keyed = type?.policy.keyed ?? false
    await this.#settler.settle(action, { job: held.job, workerId: this.id, attempt, keyed, durationMs, why })
    this.#processedCount += 1
  }

  async #release(held: HeldJob, why: string): Promise<void> {
    try {
      await this.#settle(held, { kind: 'release' }, undefined, held.job.attempt, 0, why)
    } catch (error) {
      this.#core.events.emit({ name: 'storage.failed', during: 'release', failure: describeFailure(error) })
    } finally {
      this.#gone(held)
    }
  }

  #gone(held: HeldJob): void {
    this.#inHand.remove(held)
    if (this.#inHand.size === 0) for (const wake of this.#idleWaiters.splice(0)) wake()
    this.#dispatch()
    this.kick()
  }

  // ---- cancel, fence, idle

  #cancel(jobIds: readonly string[]): void {
    for (const jobId of jobIds) this.#inHand.byJobId(jobId)?.abort?.('cancel')
  }

  #fence(why: 'beats-failed' | 'declared-dead'): void {
    this.#fenced = true
    this.#fetchLoop.stop()
    const lost = this.#inHand.all()
    this.#core.events.emit({ name: 'worker.fenced', workerId: this.id, why, lostCount: lost.length })
    for (const held of lost) this.#reportLost(held, 'fence')
    for (const held of this.#buffer.splice(0)) this.#gone(held)
    this.abortAll('lease-lost')
  }

  #reportLost(held: HeldJob, at: 'start' | 'fence'): void {
    this.#core.events.emit({ name: 'job.lease_lost', ...this.#ofAttempt(held.job, held.job.attempt), at })
  }

  #reportCompleted(of: AttemptIdentity, type: RegisteredType, durationMs: number): void {
    this.#processedCount += 1
    this.#core.events.emit({ name: 'job.completed', ...of, durationMs, repeated: false })
    if (!type.policy.keyed) return
    const { jobId, queue } = of
    this.#core.events.emit({ name: 'idempotency.claim', outcome: 'completed', jobId, type: of.type, queue })
  }

  #ofAttempt(job: FetchedJob, attempt: number): AttemptIdentity {
    return { jobId: job.lease.jobId, type: job.type, queue: job.queue, workerId: this.id, attempt }
  }

  #idle(): Promise<void> {
    if (this.#inHand.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idleWaiters.push(resolve))
  }

  async #idleWithin(limitMs: number): Promise<void> {
    if (this.#inHand.size === 0) return
    await new Promise<void>((resolve) => {
      const timer = this.#core.runtime.scheduler.after(limitMs, resolve)
      this.#idleWaiters.push(() => {
        timer.cancel()
        resolve()
      })
    })
  }
}

function pickKey(gate: RunnableGate): Pick<RunnableGate, 'keyHash' | 'keyPrefix'> {
  return { keyHash: gate.keyHash, keyPrefix: gate.keyPrefix }
}
