// A storage that cannot take the job: the sender gets 503 and delivers again; nothing is lost and nothing runs twice.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { createChokaQ } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { answerOf, counts, delivery, openChokaQ, receiverOf } from './receiving.ts'

function temporaryPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'chokaq-http-'))
  onTestFinished(() => {
    rmSync(folder, { recursive: true })
  })
  return join(folder, 'jobs.db')
}

describe('a storage that is away', () => {
  it('is 503 with Retry-After while another writer holds the database; the redelivery is taken once', async () => {
    const path = temporaryPath()
    const onError = vi.fn<() => void>()
    const chokaq = openChokaQ({ storage: sqlite(path), enqueueDeadline: '100ms' })
    await chokaq.ready()
    const receive = receiverOf(chokaq, { onError })
    const writer = new Database(path)
    writer.exec('BEGIN IMMEDIATE')
    const response = await receive(delivery('d1'))
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5'])
    expect(await response.json()).toMatchObject({ code: 'unavailable' })
    expect(onError).toHaveBeenCalledOnce()
    writer.exec('COMMIT')
    writer.close()
    // The first call may still be stored after its deadline: then the redelivery is its duplicate.
    expect([200, 202]).toContain((await receive(delivery('d1'))).status)
    expect(await counts(chokaq)).toEqual({ hot: 1, archive: 0, dlq: 0 })
  })

  it('is 503 after close(): the next process takes the redelivery', async () => {
    const chokaq = createChokaQ({ storage: sqlite(':memory:') })
    const receive = receiverOf(chokaq)
    await chokaq.close()
    expect(await answerOf(await receive(delivery('d1')))).toMatchObject({ status: 503, body: { code: 'unavailable' } })
  })

  it('is 503 where a conflict cannot be kept yet', async () => {
    const path = temporaryPath()
    const chokaq = openChokaQ({ storage: sqlite(path), enqueueDeadline: '100ms' })
    const receive = receiverOf(chokaq)
    await receive(delivery('d1'))
    const conflicting = () => delivery('d1', JSON.stringify({ event: 'order.paid', amount: 13 }))
    const writer = new Database(path)
    writer.exec('BEGIN IMMEDIATE')
    expect((await receive(conflicting())).status).toBe(503)
    writer.exec('COMMIT')
    writer.close()
    expect(await answerOf(await receive(conflicting()))).toMatchObject({ status: 200, body: { outcome: 'conflict' } })
    expect((await counts(chokaq)).dlq).toBe(1)
  })
})
