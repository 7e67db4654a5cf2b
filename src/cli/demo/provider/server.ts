/**
 * Three payment providers behind one door, with the weather of the real world: they may fail or hang up after the money
 * has moved. They know nothing of jobs.
 *
 * The bank and the voucher office take no keys: each request is a charge. The bank can be asked what it charged, and its
 * answer lags behind its books. The card provider has Stripe's rules:
 *
 * - A key that has a charge is answered with that charge, and nothing is charged.
 * - A key whose first request is still running is answered 409.
 * - A key with other parameters is answered 400.
 * - It stores the charge, never the 500: a repeat after an error gets the charge.
 *
 * With all three, a caller who hangs up changes nothing: the charge is made all the same.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { randomUUID } from 'node:crypto'
import type { Behaviour } from './behaviour.ts'
import type { Charge, Ledger } from './ledger.ts'
import { isProviderName, type ProviderName } from './names.ts'

/** One request, as the provider saw it end. */
export interface RequestRecord {
  readonly provider: ProviderName
  readonly worker: string
  readonly idempotencyKey: string
  readonly paymentAttemptId: string
  readonly did: 'charged' | 'replayed' | 'nothing'
  /** 'gone': the caller had hung up before the answer. */
  readonly answer: '200' | '400' | '409' | '500' | 'cut' | 'gone'
  /** When the caller hung up, milliseconds since 1970; null where it waited for the answer. */
  readonly goneAtMs: number | null
}

/** A request that waits for its answer. */
export interface InFlight {
  readonly worker: string
  readonly ageMs: number
}

export interface ProviderOptions {
  readonly ledger: Ledger
  readonly behaviour: (paymentAttemptId: string, nth: number, provider: ProviderName) => Behaviour
  /** How long a charge of the bank is missing from its answers. Defaults to not at all. */
  readonly readLagMs?: (paymentAttemptId: string) => number
  readonly wait: (ms: number) => Promise<void>
  readonly onRequestEnd?: (record: RequestRecord) => void
}

interface ChargeRequest {
  readonly provider: ProviderName
  readonly worker: string
  readonly idempotencyKey: string
  readonly paymentAttemptId: string
  readonly amountCents: number
  readonly arrivedAtMs: number
}

type Did = RequestRecord['did']

export function createProvider(options: ProviderOptions): Server {
  const provider = new Provider(options)
  return createServer((request, response) => {
    provider.handle(request, response).catch((error: unknown) => {
      sendJson(response, 500, { error: { type: 'api_error', message: String(error) } })
    })
  })
}

class Provider {
  readonly #options: ProviderOptions
  /** Keys whose first request is still running. */
  readonly #inProgress = new Map<string, ChargeRequest>()
  /** Requests that wait for their answer; a caller that hung up waits no more. */
  readonly #inFlight = new Set<ChargeRequest>()
  readonly #requestCounts = new Map<string, number>()
  /** Requests at work, also of callers that hung up: their charge may still come. */
  readonly #working = new Set<ChargeRequest>()
  /** What the bank tells of its charges by now. */
  readonly #visible = new Map<string, Charge>()

  constructor(options: ProviderOptions) {
    this.#options = options
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://provider')
    const route = `${request.method} ${pathname}`
    const provider = /^POST \/([a-z]+)\/charges$/.exec(route)?.[1]
    if (isProviderName(provider)) {
      await this.#charge(provider, request, response)
    } else if (route === 'GET /bank/charges') {
      const charge = this.#visible.get(searchParams.get('paymentAttemptId') ?? '')
      sendJson(response, 200, { charges: charge === undefined ? [] : [{ id: charge.chargeId }] })
    } else if (route === 'GET /admin/state') {
      const working = [...this.#working].map(({ paymentAttemptId }) => paymentAttemptId)
      sendJson(response, 200, { chargeCount: this.#options.ledger.size, inFlight: this.#listInFlight(), working })
    } else {
      sendJson(response, 404, { error: { type: 'invalid_request_error', message: `no such route: ${route}` } })
    }
  }

  #listInFlight(): readonly InFlight[] {
    return [...this.#inFlight].map(({ worker, arrivedAtMs }) => ({ worker, ageMs: performance.now() - arrivedAtMs }))
  }

  async #charge(provider: ProviderName, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = readRequest(provider, request, await readText(request))
    if (asked === undefined) {
      sendJson(response, 400, {
        error: { type: 'invalid_request_error', message: 'an attempt, an amount and, for cards, a key are needed' },
      })
      return
    }
    const caller = { goneAtMs: null as number | null }
    this.#inFlight.add(asked)
    response.once('close', () => {
      this.#inFlight.delete(asked)
      if (!response.writableEnded) caller.goneAtMs = Date.now()
    })
    const record = (did: Did, answer: Exclude<RequestRecord['answer'], 'gone'>): void => {
      this.#inFlight.delete(asked)
      const { worker, idempotencyKey, paymentAttemptId } = asked
      this.#options.onRequestEnd?.({
        provider,
        worker,
        idempotencyKey,
        paymentAttemptId,
        did,
        answer: caller.goneAtMs === null ? answer : 'gone',
        goneAtMs: caller.goneAtMs,
      })
    }
    const known = this.#inProgress.get(asked.idempotencyKey) ?? this.#options.ledger.find(asked.idempotencyKey)
    if (known !== undefined && !isSameOperation(known, asked)) {
      record('nothing', '400')
      sendError(response, 400, 'idempotency_error', 'this key was used with other parameters')
    } else if (this.#inProgress.has(asked.idempotencyKey)) {
      record('nothing', '409')
      sendError(response, 409, 'idempotency_key_in_use', 'a request with this key is still running')
    } else {
      this.#working.add(asked)
      await this.#chargeOrReplay(asked, response, record).finally(() => this.#working.delete(asked))
    }
  }

  async #chargeOrReplay(
    asked: ChargeRequest,
    response: ServerResponse,
    record: (did: Did, answer: '200' | '500' | 'cut') => void,
  ): Promise<void> {
    const { provider, idempotencyKey, paymentAttemptId } = asked
    const nth = (this.#requestCounts.get(paymentAttemptId) ?? 0) + 1
    this.#requestCounts.set(paymentAttemptId, nth)
    const { fault, beforeChargeMs, afterChargeMs } = this.#options.behaviour(paymentAttemptId, nth, provider)
    const stored = this.#options.ledger.find(idempotencyKey)
    if (fault === 'lost' && stored === undefined) {
      record('nothing', 'cut')
      response.destroy()
      return
    }
    let charge: Charge
    if (idempotencyKey !== '') this.#inProgress.set(idempotencyKey, asked)
    try {
      if (stored === undefined) await this.#options.wait(beforeChargeMs)
      charge = stored ?? this.#recordCharge(asked)
      await this.#options.wait(afterChargeMs)
    } finally {
      this.#inProgress.delete(idempotencyKey)
    }
    const did = stored === undefined ? 'charged' : 'replayed'
    if (fault === 'cut' || fault === 'lost') {
      record(did, 'cut')
      response.destroy()
    } else if (fault === 'error') {
      record(did, '500')
      sendError(response, 500, 'api_error', 'something went wrong on our side')
    } else {
      record(did, '200')
      response.setHeader('idempotent-replayed', String(stored !== undefined))
      sendJson(response, 200, { id: charge.chargeId, amountCents: charge.amountCents })
    }
  }

  #recordCharge({ provider, idempotencyKey, paymentAttemptId, amountCents, worker }: ChargeRequest): Charge {
    const chargeId = `ch_${randomUUID()}`
    const charge = { provider, chargeId, idempotencyKey, paymentAttemptId, amountCents, worker }
    this.#options.ledger.record(charge)
    if (provider === 'bank') void this.#show(charge)
    return charge
  }

  async #show(charge: Charge): Promise<void> {
    const lagMs = this.#options.readLagMs?.(charge.paymentAttemptId) ?? 0
    if (lagMs > 0) await this.#options.wait(lagMs)
    this.#visible.set(charge.paymentAttemptId, charge)
  }
}

function isSameOperation(known: Charge | ChargeRequest, asked: ChargeRequest): boolean {
  return known.paymentAttemptId === asked.paymentAttemptId && known.amountCents === asked.amountCents
}

function readRequest(provider: ProviderName, request: IncomingMessage, body: string): ChargeRequest | undefined {
  // Who takes no keys does not look at one.
  const idempotencyKey = provider === 'card' ? request.headers['idempotency-key'] : ''
  const worker = request.headers['x-worker']
  const { paymentAttemptId, amountCents } = parseObject(body)
  if (typeof idempotencyKey !== 'string' || idempotencyKey.length > 255) return undefined
  if (provider === 'card' && idempotencyKey === '') return undefined
  if (typeof paymentAttemptId !== 'string' || typeof amountCents !== 'number') return undefined
  return {
    provider,
    worker: typeof worker === 'string' ? worker : 'unknown',
    idempotencyKey,
    paymentAttemptId,
    amountCents,
    arrivedAtMs: performance.now(),
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function sendError(response: ServerResponse, status: number, type: string, message: string): void {
  sendJson(response, status, { error: { type, message } })
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  if (response.destroyed) return
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
