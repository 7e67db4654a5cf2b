/**
 * Where a tracer hangs itself into the engine. Events tell what happened and when it is over; a span has to be open
 * around a call, and its context has to travel with the job, so this is a port of its own. Without a tracer each place
 * costs one comparison.
 */
import type { StoredFailure } from './failure.ts'

/** One call that stores jobs of one type. */
export interface SentJobs {
  readonly queue: string
  readonly type: string
  /** Undefined where the call stores several. */
  readonly jobId: string | undefined
  readonly count: number
}

export interface Sending {
  /** Stored with each of the jobs. */
  readonly traceContext: string | undefined
  /** The call is over; with what was thrown where it failed. */
  end(...thrown: readonly [] | readonly [unknown]): void
}

export interface ProcessedJob {
  readonly jobId: string
  readonly type: string
  readonly queue: string
  readonly workerId: string
  readonly attempt: number
  /** What the producer's tracer stored. */
  readonly traceContext: string | undefined
}

/** How the run of a handler ended. */
export interface RunEnd {
  readonly durationMs: number
  readonly failure: StoredFailure | undefined
}

export interface EffectCall {
  readonly effect: string
  readonly call: 'run' | 'reconcile' | 'compensate'
}

/** Implementations never throw and call `work` exactly once, whatever becomes of their own spans. */
export interface Tracer {
  send(jobs: SentJobs): Sending
  process<T>(job: ProcessedJob, work: () => Promise<T>, endOf: (result: T) => RunEnd): Promise<T>
  effect<T>(call: EffectCall, work: () => Promise<T>): Promise<T>
}

/** The place of one tracer, shared by a client and the workers made from it. */
export class Tracing {
  tracer: Tracer | undefined

  effect<T>(call: EffectCall, work: () => Promise<T>): Promise<T> {
    return this.tracer === undefined ? work() : this.tracer.effect(call, work)
  }
}
