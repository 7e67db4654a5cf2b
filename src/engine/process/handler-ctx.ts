/**
 * The ctx of one attempt. It is revoked when the attempt ends: a handler that goes on in the background can no longer
 * write anything through it.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Job, PayloadIn, Stored } from '../../core/contract.ts'
import type { ChildOptions, Completed, MiddlewareCtx } from '../../core/ctx.ts'
import { ChokaQError } from '../../core/errors.ts'
import type { FetchedJob, NewJob } from '../../core/job.ts'
import { effectKey } from '../../core/key-canon.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { PgLike, SqliteLike, TxArg } from '../../core/tx.ts'
import { isInTransaction, type Checkpoints } from './checkpoints.ts'
import type { EffectScope, ScopeGuards } from './effect-scope.ts'

/** What the worker lends to a ctx: the stages of enqueue and settle, which this stage does not import. */
export interface CtxServices {
  readonly runtime: Runtime
  prepareChild(job: Job, payload: unknown, options: ChildOptions, lineage: ChildLineage): Promise<NewJob>
  enqueueChildSync(tx: SqliteLike, job: Job, payload: unknown, options: ChildOptions, lineage: ChildLineage): void
  /** Throws CHOKAQ_LEASE_LOST where the lease is gone. */
  completeSync(tx: SqliteLike, result: unknown, children: readonly NewJob[]): void
  enqueueChildIn(tx: TxArg, job: Job, payload: unknown, options: ChildOptions, lineage: ChildLineage): Promise<void>
  completeIn(tx: TxArg, result: unknown, children: readonly NewJob[]): Promise<void>
  checkpoints(): Checkpoints
  resultText(result: unknown): string
  log(message: string, fields: Readonly<Record<string, unknown>>): void
  /** Made with its first use: most handlers have no effects and no memos. */
  effectScope(guards: ScopeGuards): Pick<EffectScope, 'calls' | 'memo'>
}

/** Undefined id: a fresh one, because the child commits with the completion or not at all. */
export interface ChildLineage {
  readonly id?: string
  readonly parentId: string
}

export interface CtxFacts {
  readonly job: FetchedJob
  readonly keyHash: string | undefined
  readonly key: string | undefined
  readonly attempt: number
  readonly payload: unknown
  readonly deadlineMs: number
}

const maxChildCount = 1_000
/** Marks what completeSync returned, so that nothing else passes for it. */
export const completedToken: Completed<never> = Object.freeze({ __completed: undefined as never })

interface CallUnderWay {
  readonly call: 'enqueue' | 'transaction'
  promise: Promise<unknown> | undefined
}

export class HandlerCtx implements MiddlewareCtx {
  readonly jobId: string
  readonly key: string | undefined
  readonly attempt: number
  readonly type: string
  readonly queue: string
  readonly payload: unknown
  readonly children: NewJob[] = []
  completedInTransaction = false
  readonly #facts: CtxFacts
  readonly #services: CtxServices
  #controller: AbortController | undefined
  #abortReason: Error | undefined
  #revoked = false
  /** Made with the first call. */
  #underWay: Set<CallUnderWay> | undefined
  #checkpoints: Checkpoints | undefined

  constructor(facts: CtxFacts, services: CtxServices) {
    this.#facts = facts
    this.#services = services
    this.jobId = facts.job.lease.jobId
    this.key = facts.key
    this.attempt = facts.attempt
    this.type = facts.job.type
    this.queue = facts.job.queue
    this.payload = facts.payload
  }

  /** Made when first asked for: most handlers never look, and a controller costs more than the rest of the ctx. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason)
    }
    return this.#controller.signal
  }

  get deadline(): Date {
    return new Date(this.#facts.deadlineMs)
  }

  get effects(): EffectScope['calls'] {
    return this.#services.effectScope(this.guards).calls
  }

  memo<T>(name: string, compute: () => T | Promise<T>): Promise<Stored<T>> {
    this.#alive('memo')
    this.#notCompleted()
    return this.#services.effectScope(this.guards).memo(name, compute) as Promise<Stored<T>>
  }

  /** What keeps an effect from being called: looked at just before its intent is written. */
  get guards(): ScopeGuards {
    return {
      signal: () => this.signal,
      check: (effect) => {
        this.#alive(`effects.${effect}`)
        if (isInTransaction()) throw new ChokaQError('CHOKAQ_EFFECT_IN_TRANSACTION', { effect })
        if (this.completedInTransaction) {
          throw new ChokaQError('CHOKAQ_EFFECT_AFTER_COMPLETE', { effect, jobId: this.jobId })
        }
      },
    }
  }

  log(message: string, fields: object = {}): void {
    if (!this.#revoked) this.#services.log(message, { ...fields })
  }

  idempotencyKey(name: string): string {
    if (typeof name !== 'string' || name === '') {
      throw new ChokaQError('CHOKAQ_OPTION_INVALID', {
        option: 'name',
        value: String(name),
        expected: 'a non-empty text',
      })
    }
    return this.#derive(name)
  }

  /** What the handler did not await: its child, or its rows, would be lost silently. */
  get unawaited(): CallUnderWay['call'] | undefined {
    for (const { call } of this.#underWay ?? []) return call
    return undefined
  }

  enqueue<S extends StandardSchemaV1, R>(
    job: Job<S, R>,
    payload: PayloadIn<S>,
    options: ChildOptions & { tx?: TxArg } = {},
  ): Promise<void> {
    return this.#track('enqueue', () => this.#enqueueChild(job, payload, options))
  }

  async #enqueueChild(job: Job, payload: unknown, all: ChildOptions & { tx?: TxArg }): Promise<void> {
    this.#alive('enqueue')
    this.#notCompleted()
    const { tx, ...options } = all
    if (tx !== undefined) {
      // The transaction may commit before the attempt fails, so the next attempt must find the same child.
      const { item: named = '', ...others } = options
      const lineage = { parentId: this.jobId, id: this.#childId(job, named) }
      return this.#services.enqueueChildIn(tx, job, payload, others, lineage)
    }
    const { item, ...rest } = options
    const lineage = { parentId: this.jobId, ...(item === undefined ? {} : { id: this.#childId(job, item) }) }
    const child = await this.#services.prepareChild(job, payload, rest, lineage)
    this.#alive('enqueue')
    if (item !== undefined) refuseTwin(child, this.children)
    if (this.children.length >= maxChildCount) {
      throw new ChokaQError('CHOKAQ_OPTION_INVALID', {
        option: 'ctx.enqueue',
        value: `call ${maxChildCount + 1} of one attempt`,
        expected: `at most ${maxChildCount} children; enqueue one that enqueues the rest`,
      })
    }
    this.children.push(child)
  }

  enqueueSync<S extends StandardSchemaV1, R>(
    job: Job<S, R>,
    payload: PayloadIn<S>,
    options: ChildOptions & { tx: SqliteLike },
  ): void {
    this.#alive('enqueueSync')
    this.#notCompleted()
    const { item, tx, ...rest } = options
    // The transaction may commit before the attempt fails, so the next attempt must find the same child.
    const lineage = { parentId: this.jobId, id: this.#childId(job, item ?? '') }
    this.#services.enqueueChildSync(tx, job, payload, rest, lineage)
  }

  completeSync<T>(tx: SqliteLike, result: T): Completed<T> {
    this.#alive('completeSync')
    this.#notCompleted()
    this.#allAwaited()
    this.#services.completeSync(tx, result, this.children)
    this.completedInTransaction = true
    return completedToken
  }

  async complete<T>(tx: TxArg, result: T): Promise<Completed<T>> {
    this.#alive('complete')
    this.#notCompleted()
    this.#allAwaited()
    await this.#services.completeIn(tx, result, this.children)
    this.completedInTransaction = true
    return completedToken
  }

  transaction<T>(name: string, work: (tx: PgLike) => Promise<T>): Promise<Stored<T>> {
    return this.#track('transaction', async () => {
      this.#alive('transaction')
      this.#notCompleted()
      return (await this.#ownCheckpoints().run(name, work)) as Stored<T>
    })
  }

  transactionSync<T>(name: string, work: (tx: SqliteLike) => T): Stored<T> {
    this.#alive('transactionSync')
    this.#notCompleted()
    return this.#ownCheckpoints().runSync(name, work) as Stored<T>
  }

  #ownCheckpoints(): Checkpoints {
    this.#checkpoints ??= this.#services.checkpoints()
    return this.#checkpoints
  }

  /** Aborts the signal. The first reason stays. */
  abort(reason: Error): void {
    this.#abortReason ??= reason
    this.#controller?.abort(this.#abortReason)
  }

  revoke(): void {
    this.#revoked = true
    // They end with CHOKAQ_CTX_REVOKED, and nobody awaits them: that must not end the process.
    for (const { promise } of this.#underWay ?? []) promise?.catch(() => undefined)
    this.#checkpoints?.end()
  }

  /** Not awaited here, so that the call has begun when this returns. */
  #track<T>(call: CallUnderWay['call'], start: () => Promise<T>): Promise<T> {
    const started: CallUnderWay = { call, promise: undefined }
    const underWay = (this.#underWay ??= new Set())
    underWay.add(started)
    const promise = start().finally(() => underWay.delete(started))
    started.promise = promise
    return promise
  }

  #allAwaited(): void {
    const call = this.unawaited
    if (call !== undefined) throw new ChokaQError('CHOKAQ_CTX_REVOKED', { jobId: this.jobId, call })
  }

  /** After completeSync the job may be gone already. */
  #notCompleted(): void {
    if (this.completedInTransaction) throw new ChokaQError('CHOKAQ_COMPLETE_TWICE', { jobId: this.jobId })
  }

  #alive(call: string): void {
    if (this.#revoked) throw new ChokaQError('CHOKAQ_CTX_REVOKED', { jobId: this.jobId, call })
    if (this.#abortReason instanceof ChokaQError && this.#abortReason.code === 'CHOKAQ_LEASE_LOST')
      throw this.#abortReason
  }

  #childId(job: Job, item: string): string {
    return this.#derive(`child\n${job.type}\n${item}`)
  }

  #derive(name: string): string {
    const { job, keyHash } = this.#facts
    return effectKey(
      { jobId: this.jobId, generation: job.generation, name, ...(keyHash === undefined ? {} : { keyHash }) },
      (text) => this.#services.runtime.sha256(text),
    )
  }
}

/** Two children of one name in one attempt: the second would be taken for a repetition of the first. */
function refuseTwin(child: NewJob, children: readonly NewJob[]): void {
  const twin = children.find(({ id }) => id === child.id)
  if (twin === undefined || twin.payload === child.payload) return
  throw new ChokaQError('CHOKAQ_CHILD_REUSED', { type: child.type, holderId: child.id })
}
