/**
 * One run of a handler: middleware around it, a timeout over it, an abort that reaches it, and a way to go on without it.
 *
 *   running --(returns or throws)--> ended
 *   running --(timeout, cancel, shutdown, lost lease)--> aborted --(ends within the grace)--> ended
 *                                                        aborted --(grace over)--> abandoned
 *
 * A handler that returns after the abort has finished: its result counts (except without a lease). One that throws after
 * the abort ended because of it. An abandoned handler cannot be stopped; its ctx is revoked and its slot given away.
 */
import type { Middleware } from '../../core/ctx.ts'
import { ChokaQError, unreachable } from '../../core/errors.ts'
import { describeFailure } from '../../core/failure.ts'
import type { ResolvedHandler } from '../../core/handler.ts'
import type { AbortKind, AttemptEnd } from '../../core/outcome.ts'
import { checkResult } from '../../core/preparation.ts'
import type { Scheduler, Timer } from '../../core/runtime.ts'
import type { ScopeGuards } from './effect-scope.ts'
import { completedToken, HandlerCtx, type CtxFacts, type CtxServices } from './handler-ctx.ts'

export interface AttemptParts {
  readonly scheduler: Scheduler
  readonly handler: ResolvedHandler
  readonly middleware: readonly Middleware[]
  readonly timeoutMs: number
  readonly abortGraceMs: number
  readonly services: CtxServices
  readonly onAbort: (by: AbortKind) => void
}

export type AttemptResult =
  | { readonly kind: 'ended'; readonly end: AttemptEnd }
  /** It did not end in time; `ended` resolves if it ever does. */
  | { readonly kind: 'abandoned'; readonly end: AttemptEnd; readonly ended: Promise<unknown> }

type Outcome = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly thrown: unknown }

export class Attempt {
  readonly #parts: AttemptParts
  readonly #facts: CtxFacts
  readonly #ctx: HandlerCtx
  #aborted: { readonly by: AbortKind; readonly error: ChokaQError } | undefined
  #grace: Timer | undefined
  #abandon: () => void = () => undefined

  constructor(facts: CtxFacts, parts: AttemptParts) {
    this.#facts = facts
    this.#parts = parts
    this.#ctx = new HandlerCtx(facts, parts.services)
  }

  /** The ctx's guards, for what the engine does through it before the handler runs. */
  get guards(): ScopeGuards {
    return this.#ctx.guards
  }

  /** Aborts the handler's signal; the first reason stays. */
  abort(by: AbortKind): void {
    if (this.#aborted !== undefined) return
    this.#aborted = { by, error: this.#abortError(by) }
    this.#ctx.abort(this.#aborted.error)
    this.#parts.onAbort(by)
    this.#grace = this.#parts.scheduler.after(this.#parts.abortGraceMs, () => {
      this.#abandon()
    })
  }

  async run(): Promise<AttemptResult> {
    const timeout = this.#parts.scheduler.after(this.#parts.timeoutMs, () => {
      this.abort('timeout')
    })
    // The signal may have been aborted before the start; then the grace is running already.
    const handler = this.#invoke()
    const first = await new Promise<Outcome | 'abandoned'>((resolve) => {
      this.#abandon = () => {
        resolve('abandoned')
      }
      void handler.then(resolve)
    })
    timeout.cancel()
    this.#grace?.cancel()
    this.#ctx.revoke()
    if (first === 'abandoned') return { kind: 'abandoned', end: this.#abortedEnd(undefined), ended: handler }
    return this.#result(first)
  }

  /** Never rejects. */
  async #invoke(): Promise<Outcome> {
    try {
      const isBare = this.#parts.middleware.length === 0
      return { ok: true, value: await (isBare ? this.#callHandler() : this.#callLayer(0)) }
    } catch (thrown) {
      return { ok: false, thrown }
    }
  }

  #callHandler(): unknown {
    return this.#parts.handler.run(this.#facts.payload, this.#ctx)
  }

  /** Asynchronous, so that what a handler throws before its first await is a rejection for the layers around it, too. */
  async #callLayer(index: number): Promise<unknown> {
    const layer = this.#parts.middleware[index]
    if (layer === undefined) return this.#callHandler()
    let inner: { readonly promise: Promise<unknown>; pending: boolean } | undefined
    const next = (): Promise<unknown> => {
      if (inner !== undefined) {
        return Promise.reject(new ChokaQError('CHOKAQ_NEXT_TWICE', { jobId: this.#ctx.jobId }))
      }
      const started = { promise: this.#callLayer(index + 1), pending: true }
      const ended = (): void => void (started.pending = false)
      started.promise.then(ended, ended)
      inner = started
      return started.promise
    }
    const value = await layer(this.#ctx, next)
    // A layer that did not wait for next() would complete the job while its handler still runs.
    if (stillRuns(inner)) await inner.promise
    return value
  }

  /** A promise only where the schema of the result is asynchronous. */
  #result(outcome: Outcome): AttemptResult | Promise<AttemptResult> {
    if (!outcome.ok) {
      if (this.#aborted !== undefined) return { kind: 'ended', end: this.#abortedEnd(outcome.thrown) }
      return threw(outcome.thrown)
    }
    if (this.#aborted?.by === 'lease-lost') return { kind: 'ended', end: this.#abortedEnd(undefined) }
    const { jobId, unawaited } = this.#ctx
    // Only the database knows whether the handler's own transaction committed. Where it did, the settle that follows
    // finds the job completed under this lease and changes nothing; where it did not, this is how the attempt failed.
    if (outcome.value === completedToken) return threw(new ChokaQError('CHOKAQ_COMPLETE_ROLLED_BACK', { jobId }))
    if (this.#ctx.completedInTransaction) return threw(new ChokaQError('CHOKAQ_COMPLETE_NOT_RETURNED', { jobId }))
    if (unawaited !== undefined) return threw(new ChokaQError('CHOKAQ_CTX_REVOKED', { jobId, call: unawaited }))
    try {
      const { handler, services } = this.#parts
      const result = checkResult(handler.contract, outcome.value, (value) => services.resultText(value))
      if (!(result instanceof Promise)) return this.#returned(result)
      return result.then((text) => this.#returned(text), threw)
    } catch (thrown) {
      // A result that cannot be stored is a failure like any other: it is recorded, retried and ends in the DLQ.
      return threw(thrown)
    }
  }

  #returned(result: string | null): AttemptResult {
    return { kind: 'ended', end: { kind: 'returned', result, children: this.#ctx.children } }
  }

  #abortedEnd(thrown: unknown): AttemptEnd {
    const { by, error } = this.#aborted ?? { by: 'timeout' as const, error: this.#abortError('timeout') }
    const failure = describeFailure(error)
    // What the handler threw in answer to its signal is often the abort reason itself; anything else is told as a cause.
    if (thrown === undefined || thrown === error) return { kind: 'aborted', by, failure, thrown: undefined }
    const told = describeFailure(thrown)
    const causes = [{ name: told.name, message: told.message }]
    return { kind: 'aborted', by, failure: { ...failure, causes }, thrown }
  }

  #abortError(by: AbortKind): ChokaQError {
    const { jobId } = this.#ctx
    switch (by) {
      case 'timeout':
        return new ChokaQError('CHOKAQ_JOB_TIMEOUT', { jobId, timeoutMs: this.#parts.timeoutMs })
      case 'cancel':
        return new ChokaQError('CHOKAQ_JOB_CANCELLED', { jobId })
      case 'shutdown':
        return new ChokaQError('CHOKAQ_SHUTDOWN', { jobId })
      case 'lease-lost':
        return new ChokaQError('CHOKAQ_LEASE_LOST', { jobId })
      default:
        return unreachable(by, 'abort kind')
    }
  }
}

function threw(thrown: unknown): AttemptResult {
  return { kind: 'ended', end: { kind: 'threw', thrown } }
}

function stillRuns<T extends { readonly pending: boolean }>(inner: T | undefined): inner is T {
  return inner?.pending === true
}
