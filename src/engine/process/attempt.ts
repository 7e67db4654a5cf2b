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
import { validate } from '../../core/preparation.ts'
import type { Scheduler, Timer } from '../../core/runtime.ts'
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
  /** The handler returned what completeSync gave: the job is settled if that transaction committed. */
  | { readonly kind: 'completed-in-transaction' }
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
    const abandoned = new Promise<'abandoned'>((resolve) => {
      this.#abandon = () => {
        resolve('abandoned')
      }
    })
    const timeout = this.#parts.scheduler.after(this.#parts.timeoutMs, () => {
      this.abort('timeout')
    })
    // The signal may have been aborted before the start; then the grace is running already.
    const handler = this.#invoke()
    const first = await Promise.race([handler, abandoned])
    timeout.cancel()
    this.#grace?.cancel()
    this.#ctx.revoke()
    if (first === 'abandoned') return { kind: 'abandoned', end: this.#abortedEnd(undefined), ended: handler }
    return this.#result(first)
  }

  async #invoke(): Promise<Outcome> {
    const { handler, middleware } = this.#parts
    const call = (index: number): Promise<unknown> => {
      const layer = middleware[index]
      if (layer === undefined) return handler.run(this.#facts.payload, this.#ctx)
      return layer(this.#ctx, () => call(index + 1))
    }
    try {
      return { ok: true, value: await call(0) }
    } catch (thrown) {
      return { ok: false, thrown }
    }
  }

  async #result(outcome: Outcome): Promise<AttemptResult> {
    if (!outcome.ok) {
      if (this.#aborted !== undefined) return { kind: 'ended', end: this.#abortedEnd(outcome.thrown) }
      return { kind: 'ended', end: { kind: 'threw', thrown: outcome.thrown } }
    }
    if (this.#aborted?.by === 'lease-lost') return { kind: 'ended', end: this.#abortedEnd(undefined) }
    if (outcome.value === completedToken) return { kind: 'completed-in-transaction' }
    if (this.#ctx.completedInTransaction) {
      const thrown = new ChokaQError('CHOKAQ_COMPLETE_NOT_RETURNED', { jobId: this.#ctx.jobId })
      return { kind: 'ended', end: { kind: 'threw', thrown } }
    }
    try {
      const result = await this.#storedResult(outcome.value)
      return { kind: 'ended', end: { kind: 'returned', result, children: this.#ctx.children } }
    } catch (thrown) {
      // A result that cannot be stored is a failure like any other: it is recorded, retried and ends in the DLQ.
      return { kind: 'ended', end: { kind: 'threw', thrown } }
    }
  }

  async #storedResult(value: unknown): Promise<string | null> {
    const { contract } = this.#parts.handler
    if (contract.result === undefined) return value === undefined ? null : this.#parts.services.resultText(value)
    const checked = await validate(contract.result, value)
    if (checked.issues !== undefined) {
      throw new ChokaQError('CHOKAQ_RESULT_INVALID', { type: contract.type, issues: checked.issues })
    }
    return checked.value === undefined ? null : this.#parts.services.resultText(checked.value)
  }

  #abortedEnd(thrown: unknown): AttemptEnd {
    const { by, error } = this.#aborted ?? { by: 'timeout' as const, error: this.#abortError('timeout') }
    const failure = describeFailure(error)
    // What the handler threw in answer to its signal is often the abort reason itself; anything else is told as a cause.
    if (thrown === undefined || thrown === error) return { kind: 'aborted', by, failure }
    const told = describeFailure(thrown)
    return { kind: 'aborted', by, failure: { ...failure, causes: [{ name: told.name, message: told.message }] } }
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
