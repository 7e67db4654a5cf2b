// A TCP proxy before a PostgreSQL server that understands where a request ends and where its reply does, so that a
// connection can be cut exactly there. A request is what a client sends until it waits: its first message, a simple query,
// or everything up to a Sync. Its reply ends with ReadyForQuery.
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

export type CutKind =
  /** The server never sees the request. */
  | 'before'
  /** The server has done it; nothing of the reply arrives. */
  | 'after'
  /** Half of the reply arrives. */
  | 'middle'
  /** The client sees its connection end; the server gets the request when `release` is called. */
  | 'late'
  /** Nothing is closed, and nothing arrives any more, in either direction. */
  | 'half-open'

export interface Cut {
  /** 1 is the next request on any connection. */
  readonly at: number
  readonly kind: CutKind
  /** Afterwards connections are refused until `disarm`. */
  readonly thenDown?: boolean
}

const simpleQuery = 0x51
const parse = 0x50
const sync = 0x53
const password = 0x70
const terminate = 0x58
const readyForQuery = 0x5a
const notification = 0x41

/** Cuts a stream of bytes into messages; those of a connection's start have no letter. */
class Messages {
  #left = Buffer.alloc(0)
  isFirst: boolean

  constructor(isFirst: boolean) {
    this.isFirst = isFirst
  }

  take(data: Buffer): readonly Buffer[] {
    this.#left = Buffer.concat([this.#left, data])
    const found: Buffer[] = []
    for (;;) {
      const head = this.isFirst ? 0 : 1
      if (this.#left.length < head + 4) return found
      const length = head + this.#left.readInt32BE(head)
      if (this.#left.length < length) return found
      found.push(this.#left.subarray(0, length))
      this.#left = this.#left.subarray(length)
      this.isFirst = false
    }
  }
}

/** One client and its connection to the server. */
class Link {
  readonly client: Socket
  readonly server: Socket
  readonly #proxy: WireProxy
  readonly #fromClient = new Messages(true)
  readonly #fromServer = new Messages(false)
  #request: Buffer[] = []
  #reply: Buffer[] = []
  #isStarting = true
  #isOver = false
  #fate: CutKind | undefined

  constructor(proxy: WireProxy, client: Socket, server: Socket) {
    this.#proxy = proxy
    this.client = client
    this.server = server
    client.on('data', (data) => this.#said(data))
    server.on('data', (data) => this.#answered(data))
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on('error', () => from.destroy())
      from.on('close', () => (this.#isHeld ? undefined : to.destroy()))
    }
  }

  get #isHeld(): boolean {
    return this.#fate === 'half-open' || this.#fate === 'late'
  }

  drop(): void {
    this.client.destroy()
    this.server.destroy()
  }

  /** What fell silent stays so: a network that comes back does not bring back what it swallowed. */
  #fallSilent(): void {
    if (this.#fate !== undefined) return
    this.#fate = 'half-open'
    const { keepAliveMs } = this.#proxy
    if (keepAliveMs !== undefined) setTimeout(() => this.server.destroy(), keepAliveMs).unref()
  }

  #said(data: Buffer): void {
    if (this.#proxy.isSilent) this.#fallSilent()
    for (const message of this.#fromClient.take(data)) {
      const kind = isTyped(message) ? message[0] : undefined
      if (kind === terminate || kind === password) {
        this.server.write(message)
        continue
      }
      this.#request.push(message)
      if (kind !== undefined && kind !== simpleQuery && kind !== sync) continue
      const request = Buffer.concat(this.#request)
      this.#request = []
      this.#send(request)
    }
  }

  #send(request: Buffer): void {
    if (this.#fate !== undefined) return
    const fate = this.#proxy.fateOf(this, textOf(request))
    this.#fate = fate
    switch (fate) {
      case undefined:
      case 'after':
      case 'middle':
        this.server.write(request)
        return
      case 'before':
        this.drop()
        return
      case 'late':
        this.#proxy.hold(async () => {
          this.server.write(request)
          await this.#whenAnswered()
          this.server.destroy()
        })
        this.client.destroy()
        return
      case 'half-open':
        return
    }
  }

  /** For a request that is late: until the server has answered or hung up. */
  #whenAnswered(): Promise<void> {
    return new Promise((resolve) => {
      const messages = new Messages(false)
      this.server.on('data', (data) => {
        if (messages.take(data).some((message) => message[0] === readyForQuery)) resolve()
      })
      this.server.on('close', () => resolve())
      if (this.server.destroyed) resolve()
    })
  }

  #answered(data: Buffer): void {
    if (this.#proxy.isSilent) this.#fallSilent()
    if (this.#isHeld) return
    if (this.#isStarting && this.#fate === undefined) this.client.write(data)
    for (const message of this.#fromServer.take(data)) this.#pass(message)
  }

  #pass(message: Buffer): void {
    const isEnd = message[0] === readyForQuery
    if (this.#isStarting) {
      // An authentication that asks for more ends nothing; a cut comes with its first word.
      if (this.#fate !== undefined) this.#end(message)
      else if (isEnd) this.#isStarting = false
      return
    }
    if (message[0] === notification && this.#reply.length === 0) {
      this.client.write(message)
      return
    }
    this.#reply.push(message)
    if (!isEnd) return
    const reply = Buffer.concat(this.#reply)
    this.#reply = []
    if (this.#fate === undefined) this.client.write(reply)
    else this.#end(reply)
  }

  /** The cut after the request was forwarded. */
  #end(reply: Buffer): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#fate !== 'middle') {
      this.drop()
      return
    }
    this.client.write(reply.subarray(0, reply.length >> 1), () => this.drop())
  }
}

/** Messages with a letter begin with a printable one; the first message begins with its length. */
function isTyped(message: Buffer): boolean {
  return (message[0] ?? 0) >= 0x20
}

function textOf(request: Buffer): string {
  if (request[0] === simpleQuery) return request.subarray(5, request.length - 1).toString('utf8')
  if (request[0] !== parse) return 'connect'
  const text = request.subarray(6)
  return text.subarray(0, text.indexOf(0)).toString('utf8')
}

export class WireProxy {
  /** The server's URL, through this proxy. */
  readonly url: string
  isDown = false
  /** Nothing is refused and nothing is answered, on connections of before and on new ones. */
  isSilent = false
  /** How long the server believes in a client that fell silent; without it for as long as the proxy lives. */
  keepAliveMs: number | undefined
  /** What the request was that the last cut met. */
  struck: string | undefined
  /** Since the last `arm`. */
  requestCount = 0
  readonly #server: Server
  readonly #links = new Set<Link>()
  readonly #unanswered = new Set<Socket>()
  #cut: Cut | undefined
  #late: (() => Promise<void>) | undefined

  static async before(url: string): Promise<WireProxy> {
    const { hostname, port } = new URL(url)
    const server = createServer({ allowHalfOpen: false })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const proxied = new URL(url)
    proxied.hostname = '127.0.0.1'
    proxied.port = String((server.address() as AddressInfo).port)
    return new WireProxy(server, proxied.href, { host: hostname, port: Number(port === '' ? 5432 : port) })
  }

  private constructor(server: Server, url: string, target: { readonly host: string; readonly port: number }) {
    this.url = url
    this.#server = server
    server.on('connection', (client) => {
      client.on('error', () => client.destroy())
      if (this.isDown) {
        client.destroy()
        return
      }
      if (this.isSilent) {
        this.#unanswered.add(client)
        client.on('close', () => this.#unanswered.delete(client))
        // Read and dropped, so that the other end can hang up.
        client.resume()
        return
      }
      const link = new Link(this, client, connect(target))
      this.#links.add(link)
      link.client.on('close', () => this.#forget(link))
      link.server.on('close', () => this.#forget(link))
    })
  }

  arm(cut: Cut): void {
    this.#cut = cut
    this.struck = undefined
    this.requestCount = 0
  }

  disarm(): void {
    this.#cut = undefined
    this.isDown = false
    this.isSilent = false
  }

  /** Cuts every connection there is. */
  dropAll(): void {
    for (const link of this.#links) link.drop()
  }

  /** Hands the held request to the server, and waits for its answer. */
  async release(): Promise<void> {
    const late = this.#late
    this.#late = undefined
    await late?.()
  }

  async close(): Promise<void> {
    this.dropAll()
    for (const client of this.#unanswered) client.destroy()
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()))
  }

  /** For a link. */
  fateOf(link: Link, text: string): CutKind | undefined {
    this.requestCount += 1
    const cut = this.#cut
    if (cut === undefined || this.struck !== undefined || this.requestCount < cut.at) return undefined
    this.struck = text
    if (cut.thenDown === true) {
      this.isDown = true
      for (const other of this.#links) if (other !== link) other.drop()
    }
    return cut.kind
  }

  /** For a link. */
  hold(late: () => Promise<void>): void {
    this.#late = late
  }

  #forget(link: Link): void {
    if (link.client.destroyed && link.server.destroyed) this.#links.delete(link)
  }
}
