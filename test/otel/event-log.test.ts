import { Writable } from 'node:stream'
import { createChokaQ, defineJob, logEvents } from 'chokaq'
import { sqlite } from 'chokaq/sqlite'
import { createWorker, defineHandler, FatalError } from 'chokaq/worker'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { levelOf } from '../../src/core/event-log.ts'
import type { ChokaQEvent } from '../../src/core/events.ts'

const greet = defineJob({ type: 'greet.v1', payload: z.object({ name: z.string() }) })
const handler = defineHandler(greet, {
  sideEffects: 'none',
  async run(p, ctx) {
    ctx.log(`hello ${p.name}`, { name: p.name })
    if (p.name === 'nobody') throw new FatalError('nobody is there')
  },
})

type Line = Readonly<Record<string, unknown>>

/** What pino writes while two jobs run, one of which dies. */
async function written(level: string): Promise<readonly Line[]> {
  const lines: Line[] = []
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(JSON.parse(chunk.toString()) as Line)
      done()
    },
  })
  const chokaq = createChokaQ({ storage: sqlite(':memory:') })
  const stop = logEvents(chokaq, pino({ level, name: 'shop' }, sink))
  await chokaq.enqueue(greet, { name: 'Ada' })
  await chokaq.enqueue(greet, { name: 'nobody' })
  const worker = createWorker({ chokaq, handlers: [handler] })
  await worker.tick()
  stop()
  await worker.stop()
  await chokaq.close()
  return lines
}

describe('events in a log', () => {
  it('carry their name, their fields and a fixed level through pino', async () => {
    const lines = await written('debug')
    const of = (event: string) => lines.filter((line) => line['event'] === event)
    expect(of('job.enqueued')).toMatchObject([{ level: 20, msg: 'job.enqueued', type: 'greet.v1' }, {}])
    expect(of('job.log')).toMatchObject([
      { level: 30, msg: 'hello Ada', name: 'shop', fields: { name: 'Ada' }, attempt: 1 },
      { msg: 'hello nobody' },
    ])
    expect(of('job.dead')).toMatchObject([{ level: 50, reason: 'FatalError', failure: { message: 'nobody is there' } }])
    expect(lines.every((line) => line['name'] === 'shop')).toBe(true)
    // The worker was stopped after the log was.
    expect(of('worker.stopped')).toEqual([])
  })

  it('of jobs that went well are below info', async () => {
    expect(new Set((await written('info')).map((line) => line['event']))).toEqual(new Set(['job.log', 'job.dead']))
  })

  const of = { jobId: 'j', type: 't', queue: 'q' }
  const ofAttempt = { ...of, workerId: 'w', attempt: 1 }
  it.each<[ChokaQEvent, string]>([
    [{ name: 'job.retried', ...ofAttempt, delayMs: 1, reason: 'retry-after', failure: null }, 'info'],
    [{ name: 'job.retried', ...ofAttempt, delayMs: 1, reason: 'failed', failure: null }, 'warn'],
    [{ name: 'idempotency.claim', ...of, outcome: 'claimed' }, 'debug'],
    [{ name: 'idempotency.claim', ...of, outcome: 'complete_conflict' }, 'error'],
    [{ name: 'effect.outcome', ...ofAttempt, effect: 'charge', outcome: 'done' }, 'debug'],
    [{ name: 'effect.outcome', ...ofAttempt, effect: 'charge', outcome: 'ambiguous' }, 'warn'],
    [{ name: 'effect.outcome', ...ofAttempt, effect: 'charge', outcome: 'double' }, 'error'],
  ])('%j is told as %s', (event, level) => {
    expect(levelOf(event)).toBe(level)
  })
})
