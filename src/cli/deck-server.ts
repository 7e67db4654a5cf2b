/** The Deck on a port of its own, for `chokaq deck`. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Deck } from '../deck/index.ts'
import { toNodeListener } from '../http/node.ts'
import { CliError } from './cli-error.ts'

export class DeckServer {
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async open(host: string, port: number, deck: Deck, onError: (error: unknown) => void): Promise<DeckServer> {
    const server = createServer(toNodeListener(deck, { onError }))
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause: NodeJS.ErrnoException) => {
        const problem = `Cannot listen on ${host}:${port} (${cause.code ?? 'unknown'}). Give another --port, or 0 for any.`
        reject(new CliError('CHOKAQ_CLI_LISTEN', problem, { cause }))
      })
      server.listen({ port, host }, resolve)
    })
    return new DeckServer(server)
  }

  get url(): string {
    const { address, port, family } = this.#server.address() as AddressInfo
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}/`
  }

  /** Pages keep their connections open; they are cut. */
  async close(): Promise<void> {
    await new Promise((resolve) => {
      this.#server.close(resolve)
      this.#server.closeAllConnections()
    })
  }
}
