/** What `/metrics` answers, in the text format of Prometheus. The packages that write it are optional. */
import type { ChokaQ } from '../engine/enqueue/client.ts'
import { instrument } from '../otel/index.ts'
import type { MetricsEndpoint } from './metrics-packages.ts'

export async function openMetrics(chokaq: ChokaQ): Promise<MetricsEndpoint> {
  const [{ PrometheusExporter, PrometheusSerializer }, { MeterProvider }] = await Promise.all([
    import('@opentelemetry/exporter-prometheus'),
    import('@opentelemetry/sdk-metrics'),
  ])
  // The server is ours: it also answers /health, and it closes with the worker.
  const reader = new PrometheusExporter({ preventServerStart: true })
  const meterProvider = new MeterProvider({ readers: [reader] })
  const serializer = new PrometheusSerializer()
  const stop = instrument(chokaq, { meterProvider })
  return {
    async respond() {
      // What could not be read (the storage is away) is left out; the rest is told.
      const { resourceMetrics } = await reader.collect()
      const headers = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }
      return new Response(serializer.serialize(resourceMetrics), { headers })
    },
    async close() {
      stop()
      await meterProvider.shutdown()
    },
  }
}
