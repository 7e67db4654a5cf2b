/**
 * Spans around sends, runs and effects. A run is the root of its own trace and *linked* to the send: between the two lie
 * a database, minutes and retries, and one send may lead to many runs.
 */
import {
  context,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Span,
  type SpanOptions,
  type Tracer as OtelTracer,
} from '@opentelemetry/api'
import { describeFailure, type StoredFailure } from '../core/failure.ts'
import type { EffectCall, ProcessedJob, RunEnd, Sending, SentJobs, Tracer } from '../core/tracing.ts'
import type { Tags } from './capped-tags.ts'
import type { ProcessMetrics } from './process-metrics.ts'
import { formatContext, parseContext } from './trace-context.ts'

export class JobTracer implements Tracer {
  /** Undefined where no tracer is set up: then this only counts. */
  readonly #tracer: OtelTracer | undefined
  readonly #metrics: ProcessMetrics | undefined
  readonly #tags: Tags

  constructor(tracer: OtelTracer | undefined, metrics: ProcessMetrics | undefined, tags: Tags) {
    this.#tracer = tracer
    this.#metrics = metrics
    this.#tags = tags
  }

  send(jobs: SentJobs): Sending {
    const { queue, type, jobId, count } = jobs
    const span = this.#start(`send ${this.#tags.queue.of(queue)}`, () => ({
      kind: SpanKind.PRODUCER,
      attributes: {
        ...this.#messaging('send', queue, type),
        ...(jobId === undefined ? { 'messaging.batch.message_count': count } : { 'messaging.message.id': jobId }),
      },
    }))
    return {
      traceContext: span && formatContext(span.spanContext()),
      end: (...thrown) => {
        const failure = thrown.length === 0 ? undefined : describeFailure(thrown[0])
        this.#metrics?.sent(queue, count, failure && errorType(failure))
        this.#end(span, failure)
      },
    }
  }

  async process<T>(job: ProcessedJob, work: () => Promise<T>, endOf: (result: T) => RunEnd): Promise<T> {
    const { queue, type, jobId, workerId, attempt } = job
    this.#metrics?.consumed(queue)
    const span = this.#start(`process ${this.#tags.queue.of(queue)}`, () => {
      const producer = parseContext(job.traceContext)
      return {
        kind: SpanKind.CONSUMER,
        // What happens to be active here is the caller that woke the worker.
        root: true,
        links: producer === undefined ? [] : [{ context: producer }],
        attributes: {
          ...this.#messaging('process', queue, type),
          'messaging.message.id': jobId,
          'messaging.client.id': workerId,
          'chokaq.job.attempt': attempt,
        },
      }
    })
    const result = await (span === undefined ? work() : context.with(trace.setSpan(ROOT_CONTEXT, span), work))
    const { durationMs, failure } = endOf(result)
    this.#metrics?.processed(queue, durationMs, failure && errorType(failure))
    this.#end(span, failure)
    return result
  }

  async effect<T>({ effect, call }: EffectCall, work: () => Promise<T>): Promise<T> {
    const span = this.#start(`effect ${effect.slice(0, 128)}`, () => ({
      kind: SpanKind.INTERNAL,
      attributes: { 'chokaq.effect.name': effect, 'chokaq.effect.call': call },
    }))
    if (span === undefined) return work()
    try {
      const value = await context.with(trace.setSpan(context.active(), span), work)
      this.#end(span, undefined)
      return value
    } catch (error) {
      this.#end(span, describeFailure(error))
      throw error
    }
  }

  #messaging(operation: 'send' | 'process', queue: string, type: string): Attributes {
    return {
      'messaging.system': 'chokaq',
      'messaging.destination.name': queue,
      'messaging.operation.name': operation,
      'messaging.operation.type': operation,
      'chokaq.job.type': type,
    }
  }

  /** A span processor that throws must cost no job its run. */
  #start(name: string, options: () => SpanOptions): Span | undefined {
    try {
      return this.#tracer?.startSpan(name, options())
    } catch {
      return undefined
    }
  }

  #end(span: Span | undefined, failure: StoredFailure | undefined): void {
    if (span === undefined) return
    try {
      if (failure !== undefined) {
        const { name, message, stack } = failure
        span.setAttribute('error.type', errorType(failure))
        span.setStatus({ code: SpanStatusCode.ERROR, message })
        span.recordException({ name, message, ...(stack === undefined ? {} : { stack }) })
      }
      span.end()
    } catch {
      // As above.
    }
  }
}

function errorType({ code, name }: StoredFailure): string {
  return code ?? name
}
