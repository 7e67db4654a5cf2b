// The one place where the documents say exactly once: rows of the application in the file that holds the jobs.
import Database from 'better-sqlite3'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createChokaQ, defineJob } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { createFakeRuntime, drain } from 'chokaq/testing'
import { createWorker, defineHandler } from 'chokaq/worker'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'

const deposit = defineJob({
  type: 'account.deposit.v1',
  payload: z.object({ transferId: z.string(), cents: z.number() }),
  result: z.object({ booked: z.number() }),
  key: (p) => p.transferId,
  duplicateWindow: '30d',
})

describe('ctx.completeSync', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'chokaq-once-'))
  })
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true })
  })

  /** Books a deposit; `spoil` runs inside the transaction, after the completion. Gives bookings and the job's state. */
  async function book(spoil: (attempt: number) => void) {
    const path = join(folder, 'app.db')
    const runtime = createFakeRuntime()
    const chokaq = createChokaQ({ storage: sqlite(path), runtime })
    await chokaq.ready()
    const db = new Database(path)
    db.pragma('synchronous = FULL')
    db.exec('CREATE TABLE bookings (transfer_id TEXT NOT NULL, attempt INTEGER NOT NULL) STRICT')
    const handler = defineHandler(deposit, {
      sideEffects: 'same-transaction',
      whenInterrupted: 'resume',
      async run(p, ctx) {
        const bookOnce = db.transaction(() => {
          db.prepare('INSERT INTO bookings VALUES (?, ?)').run(p.transferId, ctx.attempt)
          const completed = ctx.completeSync(db, { booked: p.cents })
          spoil(ctx.attempt)
          return completed
        })
        return bookOnce.immediate()
      },
    })
    const worker = createWorker({ chokaq, handlers: [handler] })
    const { id } = await chokaq.enqueue(deposit, { transferId: 't-1', cents: 500 })
    await drain(worker, { runtime })
    const bookings = db.prepare('SELECT attempt FROM bookings').pluck().all()
    const job = await chokaq.jobs.get(id)
    await runtime.complete(worker.stop())
    await chokaq.close()
    db.close()
    return { bookings, state: job?.state, result: job?.result, failures: job?.failureCount }
  }

  it('commits rows and completion together', async () => {
    const result = JSON.stringify({ booked: 500 })
    expect(await book(() => undefined)).toEqual({ bookings: [1], state: 'completed', result, failures: 0 })
  })

  it('rolls rows and completion back together, and the next attempt does both once', async () => {
    const spoilTwice = (attempt: number): void => {
      if (attempt <= 2) throw new RangeError('after the completion')
    }
    expect(await book(spoilTwice)).toMatchObject({ bookings: [3], state: 'completed', failures: 2 })
  })
})
