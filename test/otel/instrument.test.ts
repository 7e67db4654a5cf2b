import { SpanStatusCode, trace } from '@opentelemetry/api'
import { DataPointType } from '@opentelemetry/sdk-metrics'
import { createChokaQ, defineJob, type ChokaQ } from 'chokaq'
import { instrument } from 'chokaq/otel'
import { sqlite } from 'chokaq/sqlite'
import { createWorker, defineEffect, defineHandler, FatalError, RetryAfter, stripe } from 'chokaq/worker'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { claimOutcomes } from '../../src/core/counters.ts'
import { partsOf } from '../../src/engine/parts.ts'
import { clusterInstruments, processInstruments } from '../../src/otel/catalogue.ts'
import { Telemetry } from './telemetry.ts'

const payload = z.object({ id: z.string() })
const mail = defineJob({ type: 'mail.send.v1', payload, queue: 'mail' })
const charge = defineJob({ type: 'charge.v1', payload, queue: 'money', key: (p) => p.id, duplicateWindow: '1d' })
/** What spans of the effect's own client would be children of. */
const activeInEffect: (string | undefined)[] = []
const effect = defineEffect({
  name: 'charge',
  provider: stripe,
  async run(input: { readonly id: string }) {
    if (input.id === 'declined') throw Object.assign(new TypeError('declined'), { status: 402, code: 'card_declined' })
    activeInEffect.push(trace.getActiveSpan()?.spanContext().spanId)
    return { of: input.id }
  },
})
const handlers = [
  defineHandler(mail, {
    sideEffects: 'none',
    retry: { attempts: 1 },
    async run(p) {
      if (p.id === 'bad') throw new FatalError('no such address')
      if (p.id === 'flaky') throw new RangeError('try again')
      if (p.id === 'later') throw new RetryAfter('1h')
    },
  }),
  defineHandler(charge, {
    sideEffects: 'effects',
    effects: { charge: effect },
    whenInterrupted: 'resume',
    run: async (p, ctx) => void (await ctx.effects.charge({ id: p.id })),
  }),
]

let telemetry: Telemetry
let chokaq: ChokaQ
let stop: () => void

beforeEach(() => {
  telemetry = new Telemetry()
  chokaq = createChokaQ({ storage: sqlite(':memory:') })
  const { meterProvider, tracerProvider } = telemetry
  stop = instrument(chokaq, { meterProvider, tracerProvider })
})
afterEach(async () => {
  stop()
  await chokaq.close()
  await telemetry.close()
})

/** Runs what is due until nothing is left. */
async function work(): Promise<void> {
  const worker = createWorker({ chokaq, handlers })
  while ((await worker.tick()) > 0);
  await worker.stop()
}

const ofMail = { queue: 'mail', type: 'mail.send.v1' }
const ofCharge = { queue: 'money', type: 'charge.v1' }

describe('metrics', () => {
  it('have the names, kinds and units of the catalogue', async () => {
    for (const id of ['ok', 'bad', 'flaky']) await chokaq.enqueue(mail, { id })
    await chokaq.enqueue(charge, { id: 'a' })
    const worker = createWorker({ chokaq, handlers })
    await worker.start()
    await worker.stop()
    await work()
    const metrics = await telemetry.metrics()
    for (const [name, info] of Object.entries({ ...processInstruments, ...clusterInstruments })) {
      const metric = metrics.get(name)
      // An instrument that has nothing to tell yet is not exported.
      if (metric === undefined) continue
      expect([name, metric.descriptor.unit, metric.descriptor.description]).toEqual([name, info.unit, info.description])
      for (const { attributes } of metric.dataPoints)
        expect(info.attributes).toEqual(expect.arrayContaining(Object.keys(attributes)))
    }
    expect([...metrics.keys()].filter((name) => !(name in { ...processInstruments, ...clusterInstruments }))).toEqual(
      [],
    )
    expect(metrics.get('chokaq.workers.active')?.dataPoints).toMatchObject([{ value: 0 }])
  })

  it('count jobs by queue, type and reason', async () => {
    for (const id of ['ok', 'bad', 'later']) await chokaq.enqueue(mail, { id })
    await chokaq.enqueue(charge, { id: 'a' })
    await chokaq.enqueue(charge, { id: 'a' })
    await work()
    expect(await telemetry.points('chokaq.jobs.enqueued')).toEqual([
      { attributes: ofMail, value: 3 },
      { attributes: ofCharge, value: 1 },
    ])
    expect(await telemetry.points('chokaq.jobs.completed')).toEqual(
      expect.arrayContaining([
        { attributes: ofMail, value: 1 },
        { attributes: ofCharge, value: 1 },
      ]),
    )
    expect(await telemetry.points('chokaq.jobs.deduplicated')).toEqual([
      { attributes: { ...ofCharge, reason: 'active' }, value: 1 },
    ])
    const fatal = { ...ofMail, reason: 'FatalError', 'error.type': 'FatalError' }
    expect(await telemetry.points('chokaq.jobs.dlq')).toEqual([{ attributes: fatal, value: 1 }])
    // RetryAfter is a wish and no failure.
    expect(await telemetry.points('chokaq.jobs.failed')).toEqual([{ attributes: fatal, value: 1 }])
    expect(await telemetry.points('chokaq.jobs.retried')).toEqual([
      { attributes: { ...ofMail, reason: 'retry-after', 'error.type': 'RetryAfter' }, value: 1 },
    ])
    expect(await telemetry.points('chokaq.effects')).toEqual([
      { attributes: { ...ofCharge, outcome: 'done' }, value: 1 },
    ])
  })

  it('follow the conventions of messaging', async () => {
    for (const id of ['ok', 'bad']) await chokaq.enqueue(mail, { id })
    await expect(chokaq.enqueue(mail, { id: 'ok' }, { id: 'no uuid' })).rejects.toThrow()
    await work()
    const of = (operation: string) => ({
      'messaging.system': 'chokaq',
      'messaging.destination.name': 'mail',
      'messaging.operation.name': operation,
      'messaging.operation.type': operation,
    })
    expect(await telemetry.points('messaging.client.sent.messages')).toEqual([{ attributes: of('send'), value: 2 }])
    expect(await telemetry.points('messaging.client.consumed.messages')).toEqual([
      { attributes: of('process'), value: 2 },
    ])
    expect(await telemetry.points('messaging.process.duration')).toEqual(
      expect.arrayContaining([
        { attributes: of('process'), value: 1 },
        { attributes: { ...of('process'), 'error.type': 'FatalError' }, value: 1 },
      ]),
    )
  })

  it('measure lag and duration in seconds, in buckets up to hours', async () => {
    await chokaq.enqueue(mail, { id: 'ok' })
    await work()
    for (const name of ['chokaq.jobs.queue_lag', 'messaging.process.duration']) {
      const metric = (await telemetry.metrics()).get(name)
      if (metric?.dataPointType !== DataPointType.HISTOGRAM) throw new TypeError(name)
      expect(metric.dataPoints[0]?.value.buckets.boundaries).toEqual(
        expect.arrayContaining([0.005, 1, 60, 3_600, 14_400]),
      )
      expect(metric.dataPoints[0]?.value.sum).toBeLessThan(10)
    }
  })

  it('cap what whoever enqueues may choose', async () => {
    const queues = Array.from({ length: 120 }, (_, i) => `q${i}`)
    for (const queue of queues) await chokaq.enqueue(mail, { id: 'ok' }, { queue })
    const points = await telemetry.points('chokaq.jobs.enqueued')
    expect(points).toHaveLength(101)
    expect(points.find(({ attributes }) => attributes['queue'] === 'other')?.value).toBe(20)
    const totals = await telemetry.points('chokaq.cluster.jobs.enqueued')
    expect(totals.find(({ attributes }) => attributes['queue'] === 'other')?.value).toBe(20)
    expect(totals.reduce((sum, { value }) => sum + value, 0)).toBe(120)
  })

  it('say the totals of the database for the whole cluster, and how deep its queues are', async () => {
    await chokaq.enqueue(charge, { id: 'a' })
    await chokaq.enqueue(charge, { id: 'a' })
    await chokaq.enqueue(mail, { id: 'bad' })
    await work()
    await chokaq.enqueue(mail, { id: 'waits' })
    const totals = await telemetry.points('chokaq.cluster.idempotency.claims')
    const stats = (await chokaq.insight.stats()).filter(({ name }) => name === 'idempotency.claims')
    const happened = totals.filter(({ value }) => value > 0)
    expect(happened).toEqual(
      stats.map(({ queue, type, label, value }) => ({ attributes: { queue, type, outcome: label }, value })),
    )
    expect(await telemetry.points('chokaq.idempotency.claims')).toEqual(expect.arrayContaining([...happened]))
    expect(totals.map(({ attributes }) => attributes)).toEqual(
      expect.arrayContaining(claimOutcomes.map((outcome) => ({ ...ofCharge, outcome }))),
    )
    expect(await telemetry.points('chokaq.cluster.queue.jobs')).toEqual(
      expect.arrayContaining([
        { attributes: { queue: 'mail', state: 'pending' }, value: 1 },
        { attributes: { queue: 'mail', state: 'dead' }, value: 1 },
      ]),
    )
    const lag = await telemetry.points('chokaq.cluster.queue.lag')
    expect(lag.find(({ attributes }) => attributes['queue'] === 'mail')?.value).toBeGreaterThanOrEqual(0)
  })

  it('stop with what instrument returned', async () => {
    const worker = createWorker({ chokaq, handlers })
    await worker.start()
    expect(await telemetry.points('chokaq.workers.active')).toEqual([{ attributes: {}, value: 1 }])
    stop()
    await worker.stop()
    await chokaq.enqueue(mail, { id: 'ok' })
    expect(await telemetry.points('chokaq.jobs.enqueued')).toEqual([])
    expect(await telemetry.points('chokaq.workers.active')).toEqual([{ attributes: {}, value: 0 }])
    expect(telemetry.names()).toEqual([])
  })
})

describe('spans', () => {
  it('link the run to the send, which is a child of its caller', async () => {
    const tracer = telemetry.tracerProvider.getTracer('test')
    await tracer.startActiveSpan('request', async (request) => {
      await chokaq.enqueue(mail, { id: 'ok' })
      // The run must be no child of whoever happened to wake the worker.
      await work()
      request.end()
    })
    const [request, send, process] = ['request', 'send mail', 'process mail'].map((name) => telemetry.span(name))
    expect(send?.parentSpanContext?.spanId).toBe(request?.spanContext().spanId)
    expect(process?.parentSpanContext).toBeUndefined()
    expect(process?.links.map(({ context }) => context.spanId)).toEqual([send?.spanContext().spanId])
    expect([send?.kind, process?.kind]).toEqual([3, 4])
    expect(send?.attributes).toMatchObject({ 'messaging.system': 'chokaq', 'messaging.destination.name': 'mail' })
    expect(process?.attributes).toMatchObject({ 'chokaq.job.attempt': 1, 'messaging.operation.type': 'process' })
    expect(process?.attributes['messaging.message.id']).toBe(send?.attributes['messaging.message.id'])
  })

  it('of many jobs link to the one call that stored them', async () => {
    await chokaq.enqueueMany(mail, [{ id: 'a' }, { id: 'b' }])
    await work()
    const send = telemetry.span('send mail')
    expect(send.attributes['messaging.batch.message_count']).toBe(2)
    const runs = telemetry.spans().filter(({ name }) => name === 'process mail')
    expect(runs.map(({ links }) => links[0]?.context.spanId)).toEqual([
      send.spanContext().spanId,
      send.spanContext().spanId,
    ])
  })

  it('tell the failure of a run, and go on with the next attempt', async () => {
    await chokaq.enqueue(mail, { id: 'bad' })
    await work()
    const run = telemetry.span('process mail')
    expect(run.status).toEqual({ code: 2, message: 'no such address' })
    expect(run.attributes['error.type']).toBe('FatalError')
    expect(run.events.map(({ name }) => name)).toEqual(['exception'])
    expect(telemetry.span('send mail').status.code).toBe(0)
  })

  it('of effects are children of the run', async () => {
    await chokaq.enqueue(charge, { id: 'a' })
    await chokaq.enqueue(charge, { id: 'declined' })
    await work()
    const effects = telemetry.spans().filter(({ name }) => name === 'effect charge')
    const runs = telemetry.spans().filter(({ name }) => name === 'process money')
    expect(new Set(effects.map((span) => span.parentSpanContext?.spanId))).toEqual(
      new Set(runs.map((span) => span.spanContext().spanId)),
    )
    expect(effects.map((span) => span.spanContext().spanId)).toContain(activeInEffect.at(-1))
    const failed = effects.find(({ status }) => status.code === SpanStatusCode.ERROR)
    expect(failed?.attributes).toMatchObject({
      'chokaq.effect.name': 'charge',
      'chokaq.effect.call': 'run',
      'error.type': 'card_declined',
    })
  })

  it('of a child begin in the run that made it', async () => {
    const parent = defineJob({ type: 'parent.v1', payload })
    const worker = createWorker({
      chokaq,
      handlers: [
        ...handlers,
        defineHandler(parent, { sideEffects: 'none', run: (_, ctx) => ctx.enqueue(mail, { id: 'ok' }) }),
      ],
    })
    await chokaq.enqueue(parent, { id: 'p' })
    while ((await worker.tick()) > 0);
    await worker.stop()
    const send = telemetry.span('send mail')
    expect(send.parentSpanContext?.spanId).toBe(telemetry.span('process default').spanContext().spanId)
    expect(telemetry.span('process mail').links[0]?.context.spanId).toBe(send.spanContext().spanId)
  })
})

describe('without an SDK', () => {
  it('nothing listens, and no context is stored', async () => {
    const plain = createChokaQ({ storage: sqlite(':memory:') })
    const stopPlain = instrument(plain)
    const { events, tracing, driver } = partsOf(plain)
    expect([events.active, tracing.tracer]).toEqual([false, undefined])
    await plain.enqueue(mail, { id: 'ok' })
    expect(await driver.inspector.queues()).toMatchObject([{ pendingCount: 1 }])
    stopPlain()
    await plain.close()
  })
})
