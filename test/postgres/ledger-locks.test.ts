// Requests of the ledger that cannot be written now, or not at all: their own callers notice, and nobody beside them.
import { randomUUID } from 'node:crypto'
import { createChokaQ, defineJob } from 'chokaq'
import { postgres } from 'chokaq/postgres'
import { createWorker, defineEffect, defineHandler, noKey } from 'chokaq/worker'
import pg from 'pg'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { FetchedJob } from '../../src/core/job.ts'
import type { LedgerRef, LedgerRequest, LedgerVerdict } from '../../src/core/ledger.ts'
import { keyedJob, keyedPolicy } from '../../src/testing/conformance/new-job.ts'
import { soon } from '../soon.ts'
import { createDatabase } from './database.ts'
import { open, register, runtime } from './scene.ts'

const database = await createDatabase()
const driver = open(database.url)
afterAll(async () => {
  await driver.close()
  await database.drop()
})
beforeAll(() => register(driver))

/** An open transaction of somebody else, rolled back in the end. */
async function whileHeld(text: string, values: readonly unknown[], work: (client: pg.Client) => Promise<void>) {
  const client = new pg.Client(database.url)
  await client.connect()
  try {
    await client.query('BEGIN')
    await client.query(text, [...values])
    await work(client)
  } finally {
    await client.end()
  }
}

const keyed = keyedPolicy({ fastStart: true })
async function running(count: number): Promise<readonly FetchedJob[]> {
  await driver.enqueue(Array.from({ length: count }, () => keyedJob(runtime, randomUUID())))
  return driver.fetch({ workerId: 'w', queue: 'default', limit: count, policies: [keyed] })
}

function refOf(job: FetchedJob | undefined, kind: LedgerRef['kind'] = 'effect'): LedgerRef {
  return { kind, keyRef: job?.key?.hash ?? '', generation: 1, name: 'charge', item: '' }
}

function openOf({ lease, ...job }: FetchedJob): Extract<LedgerRequest, { readonly kind: 'open' }> {
  const ref = refOf({ lease, ...job })
  const decided = { seenIds: [], absentIds: [], providerKey: null, provider: 'acme', fingerprint: 'f', input: '{}' }
  return { kind: 'open', lease, ref, id: runtime.newId(), workerId: 'w', attempt: 1, keepMs: 1_000, ...decided }
}

function closeOf(id: string): Extract<LedgerRequest, { readonly kind: 'close' }> {
  return { kind: 'close', id, state: 'done', result: '1', failure: null, replayed: false, supersedes: 'same-key' }
}

const places = (verdicts: readonly LedgerVerdict[], kind: string): readonly number[] =>
  verdicts.flatMap((verdict, n) => (verdict.kind === kind ? [n] : []))
const busy = { kind: 'refused', error: { code: 'CHOKAQ_STORAGE_BUSY' } }

describe('a row that another transaction has locked', () => {
  it('of a job refuses its intent as busy, at once, and opens the others', async () => {
    const jobs = await running(100)
    const intents = jobs.map(openOf)
    await whileHeld('SELECT 1 FROM chokaq.jobs_hot WHERE id = $1 FOR UPDATE', [jobs[42]?.lease.jobId], async () => {
      const verdicts = await driver.ledger(intents)
      expect(verdicts[42]).toMatchObject(busy)
      expect(places(verdicts, 'opened')).toHaveLength(99)
    })
    expect((await driver.ledger(intents)).map(({ kind }) => kind)).toEqual(intents.map(() => 'opened'))
  })

  it('of an effect refuses its outcome as busy, at once, and closes the others', async () => {
    const intents = (await running(100)).map(openOf)
    await driver.ledger(intents)
    const outcomes = intents.map(({ id }) => closeOf(id))
    await whileHeld('SELECT 1 FROM chokaq.effects WHERE id = $1 FOR UPDATE', [intents[7]?.id], async () => {
      const verdicts = await driver.ledger(outcomes)
      expect(verdicts[7]).toMatchObject(busy)
      expect(places(verdicts, 'closed')).toHaveLength(99)
    })
    expect(places(await driver.ledger(outcomes), 'closed')).toHaveLength(100)
  })

  it('of a sibling makes an outcome wait too: one of two that say done has to see the other', async () => {
    const [job] = await running(1)
    const first = openOf(job as FetchedJob)
    const second = { ...openOf(job as FetchedJob), seenIds: [first.id] }
    await driver.ledger([first, second])
    await whileHeld('SELECT 1 FROM chokaq.effects WHERE id = $1 FOR UPDATE', [first.id], async () => {
      expect(await driver.ledger([closeOf(second.id)])).toMatchObject([busy])
    })
    expect(await driver.ledger([closeOf(first.id), closeOf(second.id)])).toEqual([
      { kind: 'closed', double: false },
      { kind: 'closed', double: true },
    ])
  })

  it('of a memo that is about to be remembered refuses that memo alone', async () => {
    const jobs = await running(8)
    const memos = jobs.map((job): LedgerRequest => {
      const ids = { lease: job.lease, ref: refOf(job, 'memo'), id: runtime.newId() }
      return { kind: 'remember', ...ids, result: '1', workerId: 'w', attempt: 1, keepMs: 1_000 }
    })
    const insert = `INSERT INTO chokaq.effects (id, state, key_ref, generation, kind, name, item, job_id, worker_id, attempt,
        token, provider, fingerprint, opened_at, closed_at, keep_ms, input, result)
      VALUES ($1, 'done', $2, 1, 'memo', 'charge', '', $1, 'x', 1, 1, '', '', 1, 1, 1, 'null', '2')`
    await whileHeld(insert, [runtime.newId(), refOf(jobs[3]).keyRef], async (client) => {
      const verdicts = await driver.ledger(memos)
      expect(verdicts[3]).toMatchObject(busy)
      expect(places(verdicts, 'remembered')).toEqual([0, 1, 2, 4, 5, 6, 7])
      await client.query('COMMIT')
    })
    expect((await driver.ledger(memos))[3]).toEqual({ kind: 'remembered', result: '2' })
  })
})

describe('content over a limit of the server', () => {
  it('costs only its own request, and the outcome without it is recorded', async () => {
    const intents = (await running(5)).map(openOf)
    await driver.ledger(intents)
    const deep = '['.repeat(100_000) + ']'.repeat(100_000)
    const outcomes = intents.map(({ id }, n) => ({ ...closeOf(id), ...(n === 2 ? { result: deep } : {}) }))
    const verdicts = await driver.ledger(outcomes)
    expect(verdicts.map(({ kind }) => kind)).toEqual(['closed', 'closed', 'refused', 'closed', 'closed'])
    expect(verdicts[2]).toMatchObject({ error: { code: 'CHOKAQ_STORAGE_FAILED' } })
    expect(await driver.ledger([closeOf(intents[2]?.id ?? '')])).toEqual([{ kind: 'closed', double: false }])
  })
})

describe('a worker', () => {
  it('goes on with all jobs but the one whose row is locked, and with that one when it is free', async () => {
    const pay = defineJob({
      type: 'payment.locked.v1',
      payload: z.object({ id: z.string() }),
      key: ({ id }) => id,
      duplicateWindow: '1d',
    })
    const called: string[] = []
    const act = defineEffect({
      name: 'act',
      provider: noKey('nobody'),
      run: async ({ id }: { readonly id: string }) => void called.push(id),
    })
    const chokaq = createChokaQ({ storage: postgres(database.url) })
    let release: () => void = () => undefined
    const mayAct = new Promise<void>((resolve) => (release = resolve))
    const started: string[] = []
    const handler = defineHandler(pay, {
      sideEffects: 'effects',
      effects: { act },
      whenInterrupted: 'resume',
      async run({ id }, ctx) {
        started.push(id)
        await mayAct
        await ctx.effects.act({ id })
      },
    })
    const ids = Array.from({ length: 20 }, (_, n) => `p${n}`)
    const sent = await Promise.all(ids.map((id) => chokaq.enqueue(pay, { id })))
    const worker = createWorker({ chokaq, handlers: [handler], concurrency: 20 })
    await worker.start()
    await vi.waitFor(() => expect(started).toHaveLength(20), soon)
    await whileHeld('SELECT 1 FROM chokaq.jobs_hot WHERE id = $1 FOR UPDATE', [sent[5]?.id], async () => {
      release()
      await vi.waitFor(() => expect(called).toHaveLength(19), soon)
      const states = await Promise.all(sent.map(async ({ id }) => (await chokaq.jobs.get(id))?.state))
      expect(states[5]).toBe('processing')
      expect(called).not.toContain('p5')
    })
    await vi.waitFor(() => expect(called).toContain('p5'), soon)
    await vi.waitFor(async () => expect((await chokaq.jobs.get(sent[5]?.id ?? ''))?.state).toBe('completed'), soon)
    await worker.stop()
    await chokaq.close()
  })
})
