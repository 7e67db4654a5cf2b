/** Health for probes: `live` asks whether a restart would help, `ready` whether this process can do its work. */
import type { Runtime } from '../core/runtime.ts'
import { healthOf, stuckReasons, type Health, type HealthOptions, type WorkerVitals } from '../engine/health.ts'
import { partsOf } from '../engine/parts.ts'
import type { RequestHandler } from './receiver.ts'

export interface HealthHandlerOptions extends HealthOptions {
  /** What createChokaQ returned. */
  chokaq: { health(options?: HealthOptions): Promise<Health> }
  /** Where the process runs a worker: its loops and the queues it serves are what counts then. */
  worker?: { health(options?: HealthOptions): Promise<Health>; readonly vitals: WorkerVitals }
}

/** However many probes ask, the storage is asked once in this time. */
const reuseMs = 1_000

/**
 * Answers `GET …/health/live` and `GET …/health/ready`, wherever it is mounted: 200 while healthy or degraded, 503 while
 * unhealthy, each with `{ state, reasons }`. `live` never looks at the storage, because a restart repairs no database.
 *
 * @example
 * createServer(toNodeListener(healthHandler({ chokaq, worker }))).listen(9090)
 */
export function healthHandler({ chokaq, worker, ...options }: HealthHandlerOptions): RequestHandler {
  const { runtime } = partsOf(chokaq)
  const ready = reused(runtime, () => (worker ?? chokaq).health(options))
  return async (request) => {
    const probe = /\/health\/(live|ready)\/?$/.exec(new URL(request.url).pathname)?.[1]
    if (probe === undefined) return answer(404, { title: 'There are /health/live and /health/ready.' })
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return answer(405, { title: 'Only GET is answered here.' }, { allow: 'GET, HEAD' })
    }
    const health = probe === 'ready' ? await ready() : healthOf(worker === undefined ? [] : stuckReasons(worker.vitals))
    return answer(health.state === 'unhealthy' ? 503 : 200, health)
  }
}

function reused({ clock }: Runtime, ask: () => Promise<Health>): () => Promise<Health> {
  let last: { readonly answer: Promise<Health>; readonly askedMs: number } | undefined
  return () => {
    const nowMs = clock.monotonicMs()
    if (last === undefined || nowMs - last.askedMs >= reuseMs) last = { answer: ask(), askedMs: nowMs }
    return last.answer
  }
}

function answer(status: number, body: object, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
  })
}
