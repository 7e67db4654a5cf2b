// What dashboards and alerts stand on: the name, kind, unit and tags of every instrument, as an exporter in memory gets
// them. The table is written out here on purpose: a change of the catalogue is a change for everybody who has a dashboard.
import { DataPointType } from '@opentelemetry/sdk-metrics'
import { createChokaQ, type ChokaQ } from 'chokaq'
import { instrument } from 'chokaq/otel'
import { sqlite } from 'chokaq/sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { counterNames } from '../../src/core/counters.ts'
import type { ChokaQEvent } from '../../src/core/events.ts'
import { partsOf } from '../../src/engine/parts.ts'
import { clusterInstruments, processInstruments } from '../../src/otel/catalogue.ts'
import { Telemetry } from './telemetry.ts'

const messaging = [
  'error.type',
  'messaging.destination.name',
  'messaging.operation.name',
  'messaging.operation.type',
  'messaging.system',
]

/** Name, kind, unit, tags in the order of the alphabet. */
const expected: readonly (readonly [string, string, string, readonly string[]])[] = [
  ['chokaq.cluster.idempotency.claims', 'counter', '{claim}', ['outcome', 'queue', 'type']],
  ['chokaq.cluster.jobs.cancelled', 'counter', '{job}', ['queue', 'type']],
  ['chokaq.cluster.jobs.completed', 'counter', '{job}', ['queue', 'type']],
  ['chokaq.cluster.jobs.deduplicated', 'counter', '{job}', ['queue', 'reason', 'type']],
  ['chokaq.cluster.jobs.deferred', 'counter', '{job}', ['queue', 'type']],
  ['chokaq.cluster.jobs.dlq', 'counter', '{job}', ['queue', 'reason', 'type']],
  ['chokaq.cluster.jobs.enqueued', 'counter', '{job}', ['queue', 'type']],
  ['chokaq.cluster.jobs.failed', 'counter', '{attempt}', ['queue', 'reason', 'type']],
  ['chokaq.cluster.jobs.pruned', 'counter', '{job}', ['queue', 'reason', 'type']],
  ['chokaq.cluster.jobs.purged', 'counter', '{job}', ['queue', 'type']],
  ['chokaq.cluster.jobs.rescued', 'counter', '{job}', ['queue', 'reason', 'type']],
  ['chokaq.cluster.jobs.resurrected', 'counter', '{job}', ['queue', 'reason', 'type']],
  ['chokaq.cluster.jobs.retried', 'counter', '{attempt}', ['queue', 'reason', 'type']],
  ['chokaq.cluster.jobs.skipped', 'counter', '{job}', ['queue', 'type']],
  ['chokaq.cluster.queue.jobs', 'gauge', '{job}', ['queue', 'state']],
  ['chokaq.cluster.queue.lag', 'gauge', 's', ['queue']],
  ['chokaq.effects', 'counter', '{effect}', ['outcome', 'queue', 'type']],
  ['chokaq.idempotency.claims', 'counter', '{claim}', ['outcome', 'queue', 'type']],
  ['chokaq.jobs.completed', 'counter', '{job}', ['queue', 'type']],
  ['chokaq.jobs.deduplicated', 'counter', '{job}', ['queue', 'reason', 'type']],
  ['chokaq.jobs.dlq', 'counter', '{job}', ['error.type', 'queue', 'reason', 'type']],
  ['chokaq.jobs.enqueued', 'counter', '{job}', ['queue', 'type']],
  ['chokaq.jobs.failed', 'counter', '{attempt}', ['error.type', 'queue', 'reason', 'type']],
  ['chokaq.jobs.heartbeat_failures', 'counter', '{failure}', ['error.type']],
  ['chokaq.jobs.queue_lag', 'histogram', 's', ['queue', 'type']],
  ['chokaq.jobs.retried', 'counter', '{attempt}', ['error.type', 'queue', 'reason', 'type']],
  ['chokaq.jobs.skipped', 'counter', '{job}', ['queue', 'type']],
  ['chokaq.jobs.state_transition_conflicts', 'counter', '{conflict}', ['queue', 'reason', 'type']],
  ['chokaq.workers.active', 'up-down counter', '{worker}', []],
  ['messaging.client.consumed.messages', 'counter', '{message}', messaging],
  ['messaging.client.sent.messages', 'counter', '{message}', messaging],
  ['messaging.process.duration', 'histogram', 's', messaging],
]
/** A delivery has no error yet. */
const neverTagged = new Set(['messaging.client.consumed.messages error.type'])

const job = { jobId: 'j', type: 'mail.send.v1', queue: 'mail' }
const attempt = { ...job, workerId: 'w', attempt: 1 }
const failure = { name: 'TypeError', message: 'no' }
const events: readonly ChokaQEvent[] = [
  { name: 'job.enqueued', ...job },
  { name: 'job.deduplicated', ...job, answer: 'active', holderId: 'h' },
  { name: 'job.started', ...attempt, queueLagMs: 5, crashCount: 0 },
  { name: 'job.skipped', ...attempt, duplicateOf: 'h', holder: 'completed' },
  { name: 'idempotency.claim', ...job, outcome: 'claimed' },
  { name: 'effect.outcome', ...attempt, effect: 'send', outcome: 'done' },
  { name: 'job.completed', ...attempt, durationMs: 5, repeated: false },
  { name: 'job.retried', ...attempt, delayMs: 5, reason: 'failed', failure },
  { name: 'job.dead', ...attempt, reason: 'FatalError', hold: false, failure },
  { name: 'job.lease_lost', ...attempt, at: 'settle' },
  { name: 'worker.started', workerId: 'w', concurrency: 1 },
  { name: 'worker.beat_failed', workerId: 'w', failure, sinceBeatMs: 5 },
]

let telemetry: Telemetry
let chokaq: ChokaQ
beforeAll(async () => {
  telemetry = new Telemetry()
  chokaq = createChokaQ({ storage: sqlite(':memory:') })
  instrument(chokaq, { meterProvider: telemetry.meterProvider, tracerProvider: telemetry.tracerProvider })
  const { driver, events: bus, tracing } = partsOf(chokaq)
  for (const event of events) bus.emit(event)
  await driver.count(counterNames.map((name) => ({ name, queue: 'mail', type: 'mail.send.v1', label: 'a', value: 1 })))
  await driver.inspector.setQueue({ name: 'mail', maxConcurrency: 5 }, { actor: 'test', note: '' })
  tracing.tracer?.send({ queue: 'mail', type: 'mail.send.v1', jobId: 'j', count: 1 }).end(new TypeError('no'))
  const run = { ...attempt, traceContext: undefined }
  await tracing.tracer?.process(
    run,
    () => Promise.resolve(),
    () => ({ durationMs: 5, failure }),
  )
})
afterAll(async () => {
  await chokaq.close()
  await telemetry.close()
})

async function exported(): Promise<readonly (typeof expected)[number][]> {
  const metrics = await telemetry.metrics()
  return [...metrics.values()]
    .map((metric) => {
      const tags = new Set(metric.dataPoints.flatMap(({ attributes }) => Object.keys(attributes)))
      return [metric.descriptor.name, kindOf(metric), metric.descriptor.unit, [...tags].sort()] as const
    })
    .sort(([a], [b]) => (a < b ? -1 : 1))
}

function kindOf(metric: { readonly dataPointType: DataPointType }): string {
  switch (metric.dataPointType) {
    case DataPointType.HISTOGRAM:
      return 'histogram'
    case DataPointType.GAUGE:
      return 'gauge'
    case DataPointType.SUM:
      return 'isMonotonic' in metric && metric.isMonotonic === true ? 'counter' : 'up-down counter'
    case DataPointType.EXPONENTIAL_HISTOGRAM:
      return 'exponential histogram'
  }
}

describe('every instrument', () => {
  it('is exported under its name, with its kind, unit and tags', async () => {
    const withoutNever = expected.map(([name, kind, unit, tags]) => [
      name,
      kind,
      unit,
      tags.filter((tag) => !neverTagged.has(`${name} ${tag}`)),
    ])
    expect(await exported()).toEqual(withoutNever)
  })

  it('is in the catalogue with the same', () => {
    const catalogue = Object.entries({ ...processInstruments, ...clusterInstruments }).map(([name, info]) => [
      name,
      info.kind.replace('observable ', ''),
      info.unit,
      [...info.attributes].sort(),
    ])
    expect(catalogue.sort(([a = ''], [b = '']) => (a < b ? -1 : 1))).toEqual(expected)
  })

  it('comes from the meter "chokaq"', async () => {
    expect(await telemetry.scopes()).toEqual(['chokaq'])
  })
})

describe('tags at the exporter', () => {
  it('are cut, counted and named where they are blank', async () => {
    const { events: bus } = partsOf(chokaq)
    for (let n = 0; n < 600; n += 1) bus.emit({ name: 'job.enqueued', jobId: 'j', type: `type-${n}`, queue: 'capped' })
    bus.emit({ name: 'job.enqueued', jobId: 'j', type: 'mail.send.v1', queue: 'q'.repeat(500) })
    bus.emit({ name: 'job.enqueued', jobId: 'j', type: 'mail.send.v1', queue: ' ' })
    for (let n = 0; n < 150; n += 1) {
      const of = { name: `Error${n}`, message: 'no' }
      bus.emit({ name: 'worker.beat_failed', workerId: 'w', failure: of, sinceBeatMs: 5 })
    }
    const enqueued = await telemetry.points('chokaq.jobs.enqueued')
    const types = new Set(enqueued.map(({ attributes }) => attributes['type']))
    expect([types.size, types.has('other')]).toEqual([501, true])
    const queues = enqueued.map(({ attributes }) => attributes['queue'])
    expect(queues).toEqual(expect.arrayContaining(['q'.repeat(128), 'unknown']))
    const errors = await telemetry.points('chokaq.jobs.heartbeat_failures')
    expect(new Set(errors.map(({ attributes }) => attributes['error.type'])).size).toBe(101)
  })
})
