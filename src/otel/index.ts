/** 'chokaq/otel': metrics and traces through the OpenTelemetry API. It brings no SDK; without one it costs nothing. */
import {
  createNoopMeter,
  metrics as globalMetrics,
  ProxyTracerProvider,
  trace as globalTrace,
  type MeterProvider,
  type TracerProvider,
} from '@opentelemetry/api'
import type { EventListener } from '../core/events.ts'
import { withDeadline } from '../engine/deadline.ts'
import { partsOf } from '../engine/parts.ts'
import { Tags } from './capped-tags.ts'
import { observeCluster } from './cluster-metrics.ts'
import { JobTracer } from './job-tracer.ts'
import { ProcessMetrics } from './process-metrics.ts'

export interface InstrumentOptions {
  /** Defaults to the global one. */
  meterProvider?: MeterProvider
  /** Defaults to the global one. */
  tracerProvider?: TracerProvider
  /** Whether totals and depths are read from the database at each collection. Defaults to true. */
  clusterMetrics?: boolean
}

const scope = 'chokaq'
/** A scrape waits ten seconds by default; what does not come from the database must arrive with it all the same. */
const readDeadlineMs = 5_000

/**
 * Tells OpenTelemetry what this client and the workers made from it do. Call it once for each client, after the SDK is
 * set up and before the first enqueue: what is not set up by then stays off and costs nothing. Returns how to stop.
 *
 * @example
 * const chokaq = createChokaQ({ storage: sqlite('./jobs.db') })
 * const stop = instrument(chokaq)
 */
export function instrument(chokaq: object, options: InstrumentOptions = {}): () => void {
  const { events, tracing, driver, runtime } = partsOf(chokaq)
  const meter = (options.meterProvider ?? globalMetrics.getMeterProvider()).getMeter(scope)
  const hasMeter = meter !== createNoopMeter()
  const tracer = tracerOf(options.tracerProvider ?? globalTrace.getTracerProvider())
  const tags = new Tags()
  const stops: (() => void)[] = []
  const metrics = hasMeter ? new ProcessMetrics(meter, tags) : undefined
  if (metrics !== undefined) {
    const listener: EventListener = (event) => {
      metrics.on(event)
    }
    stops.push(events.subscribe(listener), () => {
      metrics.stop()
    })
  }
  if (hasMeter && options.clusterMetrics !== false) {
    const within = <T>(call: Promise<T>) => withDeadline(runtime.scheduler, readDeadlineMs, 'collect', call)
    stops.push(observeCluster(meter, tags, driver.inspector, within))
  }
  if (metrics !== undefined || tracer !== undefined) {
    const jobTracer = new JobTracer(tracer, metrics, tags)
    tracing.tracer = jobTracer
    stops.push(() => {
      if (tracing.tracer === jobTracer) tracing.tracer = undefined
    })
  }
  return () => {
    for (const stop of stops.splice(0)) stop()
  }
}

/** Undefined where nobody set up tracing. */
function tracerOf(provider: TracerProvider) {
  const isOff = provider instanceof ProxyTracerProvider && provider.getDelegateTracer(scope) === undefined
  return isOff ? undefined : provider.getTracer(scope)
}
