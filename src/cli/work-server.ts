/** `chokaq work --http`: `/health/live`, `/health/ready` and `/metrics`, as long as the worker lives. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { InvalidArgumentError } from 'commander'
import type { ChokaQ } from '../engine/enqueue/client.ts'
import type { HealthOptions } from '../engine/health.ts'
import type { Worker } from '../engine/worker.ts'
import { healthHandler } from '../http/health.ts'
import { toNodeListener } from '../http/node.ts'
import { CliError } from './cli-error.ts'
import type { MetricsEndpoint } from './metrics-packages.ts'

export interface ListenAddress {
  /** Undefined: every address of the machine. */
  readonly host: string | undefined
  readonly port: number
}

/** `:9090`, `9090`, `127.0.0.1:9090` or `[::1]:9090`; port 0 takes any that is free. */
export function listenAddress(text: string): ListenAddress {
  const match = /^(?:(?:\[([\da-f:.]+)\]|([^\s:[\]/]+))?:)?(\d{1,5})$/i.exec(text)
  const port = Number(match?.[3])
  if (match !== null && port <= 65_535) return { host: match[1] ?? match[2], port }
  throw new InvalidArgumentError('Give :port, host:port or [address]:port.')
}

export interface ServerParts {
  readonly chokaq: ChokaQ
  readonly worker: Worker
  /** Limits of `/health/ready`. */
  readonly health: HealthOptions
  /** A text where there are none: what to do about it. */
  readonly metrics: MetricsEndpoint | string
}

export class WorkServer {
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async open({ host, port }: ListenAddress, parts: ServerParts): Promise<WorkServer> {
    const server = createServer(toNodeListener(router(parts)))
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause: NodeJS.ErrnoException) => {
        const where = `${host ?? ''}:${port}`
        reject(new CliError('CHOKAQ_CLI_LISTEN', `Cannot listen on ${where} (${cause.code ?? 'unknown'}).`, { cause }))
      })
      server.listen({ port, host }, resolve)
    })
    return new WorkServer(server)
  }

  get url(): string {
    const { address, port, family } = this.#server.address() as AddressInfo
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
  }

  /** Probes keep their connections open; they are cut. */
  async close(): Promise<void> {
    await new Promise((resolve) => {
      this.#server.close(resolve)
      this.#server.closeAllConnections()
    })
  }
}

function router({ chokaq, worker, metrics, health: limits }: ServerParts): (request: Request) => Promise<Response> {
  const health = healthHandler({ ...limits, chokaq, worker })
  return async (request) => {
    const { pathname } = new URL(request.url)
    if (pathname.startsWith('/health/')) return health(request)
    if (pathname !== '/metrics') return text(404, 'There are /health/live, /health/ready and /metrics.')
    if (request.method !== 'GET' && request.method !== 'HEAD') return text(405, 'Only GET is answered here.')
    return typeof metrics === 'string' ? text(501, metrics) : metrics.respond()
  }
}

function text(status: number, body: string): Response {
  return new Response(`${body}\n`, { status, headers: { 'content-type': 'text/plain; charset=utf-8' } })
}
