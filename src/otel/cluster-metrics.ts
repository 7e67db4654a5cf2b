/**
 * Totals and depths of the whole cluster, read from the database when somebody collects. Each process tells the same
 * numbers.
 */
import type { BatchObservableCallback, Meter, Observable, ObservableResult } from '@opentelemetry/api'
import { claimOutcomes, type CounterRow } from '../core/counters.ts'
import type { Inspector, QueueRow } from '../core/inspector.ts'
import type { JobTypeRow } from '../core/registration.ts'
import type { Tags } from './capped-tags.ts'
import { clusterInstruments, type ClusterInstrument } from './catalogue.ts'

type Reads = Pick<Inspector, 'stats' | 'queues' | 'jobTypes'>
type Result = Pick<ObservableResult, never> & Parameters<BatchObservableCallback>[0]

/** `within` bounds a read: a database that does not answer must not hold up everything else that is collected. */
export function observeCluster(
  meter: Meter,
  tags: Tags,
  inspector: Reads,
  within: <T>(call: Promise<T>) => Promise<T>,
): () => void {
  const instruments = new Map<ClusterInstrument, Observable>()
  for (const name of Object.keys(clusterInstruments) as ClusterInstrument[]) {
    const { kind, unit, description } = clusterInstruments[name]
    const options = { unit, description }
    const isCounter = kind === 'observable counter'
    instruments.set(
      name,
      isCounter ? meter.createObservableCounter(name, options) : meter.createObservableGauge(name, options),
    )
  }
  const of = (name: string): Observable | undefined => instruments.get(name as ClusterInstrument)
  const callback = async (result: Result): Promise<void> => {
    const reads = [inspector.stats(), inspector.queues(), inspector.jobTypes()] as const
    const [rows, queues, types] = await within(Promise.all(reads))
    observeTotals(result, [...rows, ...claimsOf(rows, types)], tags, of)
    observeQueues(result, queues, tags, of)
  }
  const observed = [...instruments.values()]
  meter.addBatchObservableCallback(callback, observed)
  return () => {
    meter.removeBatchObservableCallback(callback, observed)
  }
}

/**
 * Every outcome of each keyed type, at zero: a rate needs a beginning, and an alarm that never rang must be seen to be
 * connected.
 */
function claimsOf(rows: readonly CounterRow[], types: readonly JobTypeRow[]): readonly CounterRow[] {
  const claimed = rows.filter(({ name }) => name === 'idempotency.claims')
  const keyed = [...types.filter((type) => type.keyed), ...claimed]
  const pairs = new Map(keyed.map(({ queue, type }) => [JSON.stringify([queue, type]), { queue, type }]))
  return [...pairs.values()].flatMap((pair) =>
    claimOutcomes.map((label) => ({ ...pair, name: 'idempotency.claims' as const, label, value: 0 })),
  )
}

function observeTotals(
  result: Result,
  rows: readonly CounterRow[],
  tags: Tags,
  of: (name: string) => Observable | undefined,
): void {
  const sums = new Sums()
  for (const { name, queue, type, label, value } of rows) {
    const instrument = `chokaq.cluster.${name}`
    const attributes = { queue: tags.queue.of(queue), type: tags.type.of(type) }
    const labelName = clusterInstruments[instrument as ClusterInstrument]?.attributes[2]
    sums.add(instrument, labelName === undefined ? attributes : { ...attributes, [labelName]: label }, value)
  }
  sums.observe(result, of)
}

function observeQueues(
  result: Result,
  queues: readonly QueueRow[],
  tags: Tags,
  of: (name: string) => Observable | undefined,
): void {
  const jobs = new Sums()
  const lags = new Map<string, number>()
  for (const row of queues) {
    const queue = tags.queue.of(row.name)
    jobs.add('chokaq.cluster.queue.jobs', { queue, state: 'scheduled' }, row.scheduledCount)
    jobs.add('chokaq.cluster.queue.jobs', { queue, state: 'pending' }, row.pendingCount)
    jobs.add('chokaq.cluster.queue.jobs', { queue, state: 'fetched' }, row.fetchedCount)
    jobs.add('chokaq.cluster.queue.jobs', { queue, state: 'processing' }, row.processingCount)
    jobs.add('chokaq.cluster.queue.jobs', { queue, state: 'dead' }, row.deadCount)
    if (!row.paused) lags.set(queue, Math.max(lags.get(queue) ?? 0, row.lagMs ?? 0))
  }
  jobs.observe(result, of)
  const lag = of('chokaq.cluster.queue.lag')
  if (lag === undefined) return
  for (const [queue, lagMs] of lags) result.observe(lag, lagMs / 1_000, { queue })
}

/** Rows that a cap made one are added up: a second observation of the same tags would replace the first. */
class Sums {
  readonly #sums = new Map<string, { instrument: string; attributes: Record<string, string>; value: number }>()

  add(instrument: string, attributes: Record<string, string>, value: number): void {
    const id = JSON.stringify([instrument, ...Object.values(attributes)])
    const sum = this.#sums.get(id)
    if (sum === undefined) this.#sums.set(id, { instrument, attributes, value })
    else sum.value += value
  }

  observe(result: Result, of: (name: string) => Observable | undefined): void {
    for (const { instrument, attributes, value } of this.#sums.values()) {
      const observable = of(instrument)
      if (observable !== undefined) result.observe(observable, value, attributes)
    }
  }
}
