import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { behaviourOf, type Behaviour } from '../../src/cli/demo/provider/behaviour.ts'
import { Ledger, readLedger } from '../../src/cli/demo/provider/ledger.ts'
import { createProvider, type RequestRecord } from '../../src/cli/demo/provider/server.ts'
import { soon } from '../soon.ts'

const lagMs = 300
const calm: Behaviour = { fault: 'none', beforeChargeMs: 0, afterChargeMs: 0 }

/** A provider whose waits end when the test says so. */
class Gate {
  readonly #waiting: (() => void)[] = []
  #arrived: (() => void) | undefined
  isOpen = true

  wait(): Promise<void> {
    if (this.isOpen) return Promise.resolve()
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      this.#arrived?.()
    })
  }

  /** Until somebody waits. */
  arrival(): Promise<void> {
    if (this.#waiting.length > 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#arrived = resolve
    })
  }

  open(): void {
    this.isOpen = true
    for (const release of this.#waiting.splice(0)) release()
  }
}

describe('the payment providers', () => {
  let folder: string
  let ledger: Ledger
  let url: string
  let gate: Gate
  let lag: Gate
  let behaviours: Behaviour[]
  let records: RequestRecord[]
  let onRecord: () => void
  let close: () => Promise<void>

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'chokaq-provider-'))
    ledger = Ledger.open(join(folder, 'ledger.jsonl'))
    gate = new Gate()
    lag = new Gate()
    behaviours = []
    records = []
    onRecord = () => undefined
    const server = createProvider({
      ledger,
      behaviour: () => behaviours.shift() ?? calm,
      readLagMs: () => lagMs,
      wait: (ms) => (ms === lagMs ? lag.wait() : gate.wait()),
      onRequestEnd: (record) => {
        records.push(record)
        onRecord()
      },
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    close = async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      ledger.close()
    }
  })

  afterEach(async () => {
    await close()
    rmSync(folder, { recursive: true })
  })

  const charge = (key: string, amountCents = 5, paymentAttemptId = 'pa_1', provider = 'card'): Promise<Response> =>
    fetch(`${url}/${provider}/charges`, {
      method: 'POST',
      headers: { 'idempotency-key': key, 'x-worker': 'worker-b.1' },
      body: JSON.stringify({ paymentAttemptId, amountCents }),
    })

  const charges = () => readLedger(join(folder, 'ledger.jsonl'))

  it('charges once for a key and answers each repeat with the stored charge', async () => {
    const first = (await (await charge('k1')).json()) as { id: string }
    const repeat = await charge('k1')
    expect(repeat.status).toBe(200)
    expect(repeat.headers.get('idempotent-replayed')).toBe('true')
    expect(await repeat.json()).toEqual(first)
    expect(charges()).toHaveLength(1)
    expect(records.map(({ did, answer }) => `${did} ${answer}`)).toEqual(['charged 200', 'replayed 200'])
  })

  it('charges again for another key: it cannot know that it is the same payment', async () => {
    await charge('k1')
    await charge('k2')
    expect(charges().map(({ paymentAttemptId }) => paymentAttemptId)).toEqual(['pa_1', 'pa_1'])
  })

  it('answers 409 while the first request of a key is running', async () => {
    gate.isOpen = false
    const first = charge('k1')
    await gate.arrival()
    expect((await charge('k1')).status).toBe(409)
    gate.open()
    expect((await first).status).toBe(200)
    expect((await charge('k1')).status).toBe(200)
    expect(charges()).toHaveLength(1)
  })

  it('refuses a key with other parameters, also while the first request is running', async () => {
    gate.isOpen = false
    const first = charge('k1', 5)
    await gate.arrival()
    expect((await charge('k1', 6)).status).toBe(400)
    gate.open()
    await first
    expect((await charge('k1', 6)).status).toBe(400)
    expect((await charge('k1', 5, 'pa_2')).status).toBe(400)
    expect(charges()).toHaveLength(1)
  })

  it('stores the charge and never the 500: a repeat gets the charge', async () => {
    behaviours = [{ ...calm, fault: 'error' }]
    expect((await charge('k1')).status).toBe(500)
    expect(charges()).toHaveLength(1)
    const repeat = await charge('k1')
    expect(repeat.status).toBe(200)
    expect(await repeat.json()).toEqual({ id: charges()[0]?.chargeId, amountCents: 5 })
    expect(charges()).toHaveLength(1)
  })

  it('cuts the connection after charging: a repeat gets the charge', async () => {
    behaviours = [{ ...calm, fault: 'cut' }]
    await expect(charge('k1')).rejects.toThrow('fetch failed')
    expect((await charge('k1')).status).toBe(200)
    expect(charges()).toHaveLength(1)
    expect(records.map(({ answer }) => answer)).toEqual(['cut', '200'])
  })

  it('charges although the caller hung up, and says in its log who had', async () => {
    gate.isOpen = false
    const recorded = new Promise<void>((resolve) => {
      onRecord = resolve
    })
    const call = request(`${url}/card/charges`, {
      method: 'POST',
      headers: { 'idempotency-key': 'k1', 'x-worker': 'worker-b.1' },
    })
    call.on('error', () => undefined)
    call.end(JSON.stringify({ paymentAttemptId: 'pa_1', amountCents: 5 }))
    await gate.arrival()
    const state = (await (await fetch(`${url}/admin/state`)).json()) as { inFlight: { worker: string }[] }
    expect(state.inFlight.map(({ worker }) => worker)).toEqual(['worker-b.1'])
    call.destroy()
    // The provider has heard of it once it owes nobody an answer.
    await expect
      .poll(async () => ((await (await fetch(`${url}/admin/state`)).json()) as { inFlight: object[] }).inFlight, soon)
      .toEqual([])
    gate.open()
    await recorded
    expect(records).toMatchObject([{ worker: 'worker-b.1', did: 'charged', answer: 'gone' }])
    expect(records[0]?.goneAtMs).toBeTypeOf('number')
    expect(charges()).toHaveLength(1)
  })

  it('keeps its answers over a restart', async () => {
    await charge('k1')
    const again = Ledger.open(join(folder, 'ledger.jsonl'))
    expect(again.find('k1')).toEqual(charges()[0])
    again.close()
  })

  it('charges for each request where the provider takes no keys', async () => {
    for (const provider of ['bank', 'voucher']) {
      for (const key of ['k1', 'k1', '']) expect((await charge(key, 5, `pa_${provider}`, provider)).status).toBe(200)
    }
    expect(charges().map(({ provider }) => provider)).toEqual(['bank', 'bank', 'bank', 'voucher', 'voucher', 'voucher'])
  })

  it('breaks the connection before anything is charged', async () => {
    behaviours = [{ ...calm, fault: 'lost' }]
    await expect(charge('k1')).rejects.toThrow('fetch failed')
    expect(charges()).toHaveLength(0)
    expect(records).toMatchObject([{ did: 'nothing', answer: 'cut' }])
    expect((await charge('k1')).status).toBe(200)
    expect(charges()).toHaveLength(1)
  })

  it('tells of a charge of the bank only after the lag of its reads, and of no other', async () => {
    const told = async (): Promise<unknown> => (await fetch(`${url}/bank/charges?paymentAttemptId=pa_1`)).json()
    await charge('', 5, 'pa_1', 'voucher')
    expect(await told()).toEqual({ charges: [] })
    lag.isOpen = false
    const { id } = (await (await charge('', 5, 'pa_1', 'bank')).json()) as { id: string }
    expect(await told()).toEqual({ charges: [] })
    lag.open()
    await expect.poll(told, soon).toEqual({ charges: [{ id }] })
  })

  it('says for whom it still works, although the caller hung up', async () => {
    gate.isOpen = false
    const abort = new AbortController()
    const call = fetch(`${url}/voucher/charges`, {
      method: 'POST',
      body: JSON.stringify({ paymentAttemptId: 'pa_1', amountCents: 5 }),
      signal: abort.signal,
    })
    await gate.arrival()
    abort.abort()
    await expect(call).rejects.toThrow('abort')
    const working = async () => ((await (await fetch(`${url}/admin/state`)).json()) as { working: string[] }).working
    expect(await working()).toEqual(['pa_1'])
    gate.open()
    await expect.poll(working, soon).toEqual([])
    expect(charges()).toHaveLength(1)
  })

  it('refuses what is no charge', async () => {
    const response = await fetch(`${url}/card/charges`, { method: 'POST', body: '{"paymentAttemptId":"pa_1"}' })
    expect(response.status).toBe(400)
    expect(charges()).toHaveLength(0)
  })
})

describe('the behaviour of the provider', () => {
  it('is the same for the same seed, and another for another', () => {
    const attempts = Array.from({ length: 50 }, (_, i) => `pa_${i}`)
    const all = (seed: number) => attempts.map((attempt) => behaviourOf(seed, attempt, 1))
    expect(all(7)).toEqual(all(7))
    expect(all(7)).not.toEqual(all(8))
  })

  it('fails about every fifth first request, in both ways', () => {
    const faults = Array.from({ length: 1_000 }, (_, i) => behaviourOf(1, `pa_${i}`, 1).fault)
    expect(faults.filter((fault) => fault === 'error').length).toBeGreaterThan(60)
    expect(faults.filter((fault) => fault === 'cut').length).toBeGreaterThan(40)
    expect(faults.filter((fault) => fault === 'none').length).toBeGreaterThan(700)
  })
})
