/** What a handler and its middleware are given. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Job, PayloadIn, Stored } from './contract.ts'
import type { Duration } from './duration.ts'
import type { EffectCalls, Effects } from './effect.ts'
import type { PgLike, SqliteLike, TxArg } from './tx.ts'

/** What ctx.complete and ctx.completeSync return; the handler must return it. */
export interface Completed<T> {
  readonly __completed: T
}

export interface ChildOptions {
  /** Tells two children of one type apart where they have no key: an id of the item, never a position. */
  item?: string
  delay?: Duration
  priority?: number
  queue?: string
  tags?: readonly string[]
}

/** `E` are the effects the handler declares. */
export interface Ctx<E extends Effects = Record<never, never>> {
  readonly jobId: string
  /** The business key; undefined for a job without one. */
  readonly key: string | undefined
  /** Starts of this job, this one included: 1 at first. */
  readonly attempt: number
  /** Aborts on timeout, cancel, shutdown and a lost lease; `signal.reason` is a ChokaQError that says which. */
  readonly signal: AbortSignal
  /** When the timeout strikes. */
  readonly deadline: Date
  log(message: string, fields?: object): void
  /** The declared effects, to call: intent first, then the call, then its outcome. Await each. */
  readonly effects: EffectCalls<E>
  /**
   * A repeatable computation whose result is remembered for the next attempts, as JSON. Never the place for a side
   * effect: it may run again until its result is stored.
   */
  memo<T>(name: string, compute: () => T | Promise<T>): Promise<Stored<T>>
  /** A stable key for a provider call made by hand: same job key and name, same value, on every attempt. 36 characters. */
  idempotencyKey(name: string): string
  /**
   * Enqueues a child: it commits with this job's completion and is dropped if the attempt fails. With `tx` it commits with
   * your own transaction instead (the outbox).
   */
  enqueue<S extends StandardSchemaV1, R>(
    job: Job<S, R>,
    payload: PayloadIn<S>,
    options?: ChildOptions & { tx?: TxArg },
  ): Promise<void>
  /** Enqueues a child in your own synchronous transaction (the outbox on SQLite). */
  enqueueSync<S extends StandardSchemaV1, R>(
    job: Job<S, R>,
    payload: PayloadIn<S>,
    options: ChildOptions & { tx: SqliteLike },
  ): void
  /**
   * Completes the job inside your own synchronous transaction: your rows and the completion commit together. The last
   * thing a handler does; return what it gives.
   */
  completeSync<T>(tx: SqliteLike, result: T): Completed<T>
  /** As completeSync, inside your own asynchronous transaction (PostgreSQL). */
  complete<T>(tx: TxArg, result: T): Promise<Completed<T>>
  /**
   * Your rows and a checkpoint commit together, guarded by the lease (PostgreSQL). Once committed, later attempts get its
   * stored result and do not run `work` again; code may follow. Only database work belongs inside: no effect.
   */
  transaction<T>(name: string, work: (tx: PgLike) => Promise<T>): Promise<Stored<T>>
  /** As transaction, with a synchronous `work` (SQLite). */
  transactionSync<T>(name: string, work: (tx: SqliteLike) => T): Stored<T>
}

/** What middleware sees: the handler's ctx and which job it is. */
export interface MiddlewareCtx extends Ctx {
  readonly type: string
  readonly queue: string
  readonly payload: unknown
}

/**
 * An onion around every handler: call `next()` once and return what it gives. It runs inside the claim, so a duplicate
 * never reaches it.
 */
export type Middleware = (ctx: MiddlewareCtx, next: () => Promise<unknown>) => Promise<unknown>
