// An SDK in memory: what was measured and traced, as plain values.
import { context, type Attributes } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { DataPointType, MeterProvider, MetricReader, type MetricData } from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-base'

class PullReader extends MetricReader {
  protected override onForceFlush(): Promise<void> {
    return Promise.resolve()
  }
  protected override onShutdown(): Promise<void> {
    return Promise.resolve()
  }
}

interface Point {
  readonly attributes: Attributes
  readonly value: number
}

export class Telemetry {
  readonly #reader = new PullReader()
  readonly #spans = new InMemorySpanExporter()
  readonly meterProvider = new MeterProvider({ readers: [this.#reader] })
  readonly tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.#spans)] })

  constructor() {
    // Spans that are active follow awaits, as with an SDK of Node.
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  }

  async metrics(): Promise<ReadonlyMap<string, MetricData>> {
    const { resourceMetrics, errors } = await this.#reader.collect()
    if (errors.length > 0) throw new AggregateError(errors)
    const all = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics)
    return new Map(all.map((metric) => [metric.descriptor.name, metric]))
  }

  /** The names of the meters that have something to tell. */
  async scopes(): Promise<readonly string[]> {
    const { resourceMetrics } = await this.#reader.collect()
    return resourceMetrics.scopeMetrics.map(({ scope }) => scope.name)
  }

  /** Of a counter or gauge its value, of a histogram its count. */
  async points(name: string): Promise<readonly Point[]> {
    const metric = (await this.metrics()).get(name)
    if (metric === undefined) return []
    return metric.dataPointType === DataPointType.HISTOGRAM
      ? metric.dataPoints.map(({ attributes, value }) => ({ attributes, value: value.count }))
      : metric.dataPoints.map(({ attributes, value }) => ({ attributes, value: value as number }))
  }

  spans(): readonly ReadableSpan[] {
    return this.#spans.getFinishedSpans()
  }

  span(name: string): ReadableSpan {
    const found = this.spans().filter((span) => span.name === name)
    if (found.length !== 1) throw new TypeError(`${found.length} spans "${name}": ${this.names().join(', ')}`)
    return found[0] as ReadableSpan
  }

  names(): readonly string[] {
    return this.spans().map(({ name }) => name)
  }

  async close(): Promise<void> {
    context.disable()
    await Promise.all([this.meterProvider.shutdown(), this.tracerProvider.shutdown()])
  }
}
