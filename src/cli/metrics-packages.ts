/** Told where they are missing, so this file loads without them. */
export const metricsPackages = [
  '@opentelemetry/api',
  '@opentelemetry/sdk-metrics',
  '@opentelemetry/exporter-prometheus',
]

export interface MetricsEndpoint {
  respond(): Promise<Response>
  close(): Promise<void>
}
