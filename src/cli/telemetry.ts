/**
 * Telemetry of a worker of the command line. Its packages are optional: without them a worker runs the same. Where the
 * user's own SDK is set up (preloaded), it gets metrics and traces; with `--http` metrics are for `/metrics`.
 */
import type { ChokaQ } from '../engine/enqueue/client.ts'
import { metricsPackages, type MetricsEndpoint } from './metrics-packages.ts'

export interface Telemetry {
  readonly metrics: MetricsEndpoint | undefined
  /** Why there are no metrics, and what to do. */
  readonly problem: string
  close(): Promise<void>
}

/** Loads what needs the packages. */
export interface TelemetryModules {
  readonly otel: () => Promise<{ readonly instrument: (chokaq: object) => () => void }>
  readonly endpoint: () => Promise<{ readonly openMetrics: (chokaq: ChokaQ) => Promise<MetricsEndpoint> }>
}

const modules: TelemetryModules = {
  otel: () => import('../otel/index.ts'),
  endpoint: () => import('./metrics-endpoint.ts'),
}

export async function openTelemetry(
  chokaq: ChokaQ,
  withEndpoint: boolean,
  load: TelemetryModules = modules,
): Promise<Telemetry> {
  const problem = `needs packages that are not installed: npm install ${metricsPackages.join(' ')}`
  try {
    if (!withEndpoint) {
      const { instrument } = await load.otel()
      const stop = instrument(chokaq)
      return { metrics: undefined, problem, close: async () => void stop() }
    }
    const { openMetrics } = await load.endpoint()
    const metrics = await openMetrics(chokaq)
    return { metrics, problem, close: () => metrics.close() }
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    return { metrics: undefined, problem, close: async () => undefined }
  }
}
