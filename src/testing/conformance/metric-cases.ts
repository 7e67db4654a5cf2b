/** Buckets of metrics tell the truth: what happened, when it happened, however old it is. */
import type { CounterRow } from '../../core/counters.ts'
import {
  histogramBoundsMs,
  histogramLabel,
  maxMetricPoints,
  maxMetricSeries,
  metricLevels,
  type MetricQuery,
  type MetricSeries,
} from '../../core/metrics.ts'
import { bury, complete, retry } from './actions.ts'
import { fromTable, type CaseGroup } from './cases.ts'
import { day, hour, minute, newJob, policy, second } from './new-job.ts'
import { RandomWalk } from './random-walk.ts'
import { operator, plain, type Scene } from './scene.ts'

const limits = { limit: 1_000, archiveRetentionMs: 15 * day, dlqRetentionMs: 14 * day }

async function read(scene: Scene, query: Partial<MetricQuery> = {}): Promise<MetricSeries> {
  const nowMs = await scene.nowMs()
  return scene.inspector.metrics({ fromMs: 0, toMs: nowMs + 1, stepMs: 10 * second, ...query })
}

/** The last hours, in points of ten seconds. */
async function recent(scene: Scene, query: Partial<MetricQuery> = {}): Promise<MetricSeries> {
  return read(scene, { fromMs: (await scene.nowMs()) - 2 * hour, ...query })
}

function sums({ points }: MetricSeries): Record<string, number> {
  const found: Record<string, number> = {}
  for (const { counts } of points) {
    for (const { name, label, value } of counts) {
      const id = `${name} ${label}`
      found[id] = (found[id] ?? 0) + value
    }
  }
  return withoutZeros(found)
}

function withoutZeros(found: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== 0))
}

function totals(rows: readonly CounterRow[]): Record<string, number> {
  const found: Record<string, number> = {}
  for (const { name, label, value } of rows) found[`${name} ${label}`] = (found[`${name} ${label}`] ?? 0) + value
  return withoutZeros(found)
}

/** Every total, and those of each queue and type, are the sums of their buckets. */
async function expectTrue(scene: Scene): Promise<void> {
  const { expect, inspector } = scene
  const stats = await inspector.stats()
  expect(sums(await read(scene))).toEqual(totals(stats))
  const pairs = new Map(stats.map(({ queue, type }) => [`${queue} ${type}`, { queue, type }]))
  for (const { queue, type } of pairs.values()) {
    const own = stats.filter((row) => row.queue === queue && row.type === type)
    expect(sums(await read(scene, { queue, type })), `${queue} ${type}`).toEqual(totals(own))
  }
  for (const queue of new Set(stats.map((row) => row.queue))) {
    expect(sums(await read(scene, { queue }))).toEqual(totals(stats.filter((row) => row.queue === queue)))
  }
  for (const type of new Set(stats.map((row) => row.type))) {
    expect(sums(await read(scene, { type }))).toEqual(totals(stats.filter((row) => row.type === type)))
  }
}

async function ran(scene: Scene, options: { readonly lagMs?: number; readonly runMs?: number } = {}): Promise<void> {
  await scene.add()
  await scene.elapse(options.lagMs ?? 0)
  const job = await scene.fetchOne(plain)
  await scene.mustStart(job.lease, plain)
  await scene.elapse(options.runMs ?? 0)
  await scene.mustSettle(job.lease, complete(), 'completed')
}

/** To the beginning of a whole hour, so that no bucket is cut in two. */
async function wholeHour(scene: Scene): Promise<number> {
  await scene.elapse(hour - ((await scene.nowMs()) % hour))
  return scene.nowMs()
}

function histogram(...places: readonly string[]): readonly number[] {
  const counts = Array<number>(histogramBoundsMs.length + 1).fill(0)
  for (const place of places) counts[Number(place)] = (counts[Number(place)] ?? 0) + 1
  return counts
}

async function walk(scene: Scene, prunes: boolean): Promise<void> {
  await scene.worker('worker-2')
  const walker = new RandomWalk(scene, { prunes })
  for (let leg = 0; leg < 5; leg += 1) {
    await walker.run(30)
    await expectTrue(scene)
    await scene.driver.prune({ ...limits, archiveRetentionMs: 900 * day, dlqRetentionMs: 900 * day })
    await expectTrue(scene)
  }
}

const walks = fromTable(
  [1, 2, 3, 4].map((seed) => ({ seed, prunes: seed % 2 === 0 })),
  ({ seed, prunes }) => `the buckets of 150 random steps sum up to the totals, seed ${seed}${prunes ? ', pruned' : ''}`,
  (scene, { prunes }) => walk(scene, prunes),
)

const places = fromTable(
  [...histogramBoundsMs.slice(0, 10).flatMap((bound) => [bound, bound + 1]), 5 * hour],
  (ms) => `a lag and a run of ${ms} ms stand under the first bound that is not below them`,
  async (scene, ms) => {
    await ran(scene, { lagMs: ms, runMs: ms })
    const { points } = await recent(scene, { fromMs: (await scene.nowMs()) - day })
    scene.expect(points.flatMap(({ lagCounts }) => lagCounts)).toEqual(histogram(histogramLabel(ms)))
    scene.expect(points.flatMap(({ durationCounts }) => durationCounts)).toEqual(histogram(histogramLabel(ms)))
  },
)

const ages = fromTable(
  metricLevels.map(({ stepMs, keepMs }, n) => ({ stepMs, keepMs, next: metricLevels[n + 1]?.stepMs })),
  ({ stepMs, keepMs }) =>
    `buckets of ${stepMs / second} s stay so narrow for ${keepMs / hour} h, and their sums for ever`,
  async (scene, { stepMs, keepMs, next }) => {
    const { expect, driver } = scene
    const startMs = await wholeHour(scene)
    for (let n = 0; n < 3; n += 1) {
      await ran(scene)
      await scene.elapse(stepMs)
    }
    const query = { fromMs: startMs, toMs: startMs + 3 * stepMs, stepMs }
    const before = await scene.inspector.metrics(query)
    expect(before.points.map(({ atMs }) => atMs)).toEqual([0, 1, 2].map((n) => startMs + n * stepMs))
    await scene.elapse(keepMs - 4 * stepMs)
    for (let round = 0; round < 200; round += 1) await driver.prune({ ...limits, archiveRetentionMs: 900 * day })
    expect(await scene.inspector.metrics(query)).toEqual(before)
    await scene.elapse(2 * (next ?? 0) + 8 * stepMs)
    for (let round = 0; round < 20; round += 1) await driver.prune({ ...limits, archiveRetentionMs: 900 * day })
    const after = await scene.inspector.metrics(query)
    if (next === undefined) expect(after.points).toEqual([])
    else {
      expect(after.stepMs).toBe(next)
      expect(sums(after)).toEqual(sums(before))
    }
  },
)

export const metricCases: CaseGroup = {
  title: 'metrics',
  cases: {
    'a bucket holds what was counted in it, by name and label, with lag and run time': async (scene) => {
      const { expect } = scene
      const startMs = await wholeHour(scene)
      const job = await scene.add()
      await scene.elapse(2 * second)
      const first = await scene.fetchOne(plain)
      await scene.mustStart(first.lease, plain)
      await scene.elapse(12 * second)
      await scene.mustSettle(first.lease, retry(), 'retried')
      const again = await scene.fetchOne(plain)
      expect(again.lease.jobId).toBe(job.id)
      const { stepMs, points } = await recent(scene, { fromMs: startMs })
      expect(stepMs).toBe(10 * second)
      expect(points).toEqual([
        {
          atMs: startMs,
          counts: [{ name: 'jobs.enqueued', label: '', value: 1 }],
          durationCounts: [],
          lagCounts: histogram(histogramLabel(2 * second)),
        },
        {
          atMs: startMs + 10 * second,
          counts: [
            { name: 'jobs.failed', label: 'failed', value: 1 },
            { name: 'jobs.retried', label: 'failed', value: 1 },
          ],
          durationCounts: histogram(histogramLabel(12 * second)),
          lagCounts: [],
        },
      ])
    },

    'a fast start has its lag, and a job that never ran has no run time': async (scene) => {
      const fast = policy({ fastStart: true })
      await scene.add({ type: fast.type })
      await scene.elapse(3 * second)
      const job = await scene.fetchOne(fast)
      await scene.mustSettle(job.lease, { kind: 'release' }, 'released')
      const { points } = await recent(scene)
      scene.expect(points.flatMap(({ lagCounts }) => lagCounts)).toEqual(histogram(histogramLabel(3 * second)))
      scene.expect(points.flatMap(({ durationCounts }) => durationCounts)).toEqual([])
    },

    'what is resurrected later rewrites nothing of the past': async (scene) => {
      const { expect } = scene
      const startMs = await wholeHour(scene)
      const { lease } = await scene.running()
      await scene.mustSettle(lease, bury(), 'dead')
      await scene.driver.prune(limits)
      await scene.elapse(minute)
      const past = { fromMs: startMs, toMs: startMs + minute }
      const before = await recent(scene, past)
      expect((await scene.resurrect(lease.jobId)).kind).toBe('resurrected')
      const again = await scene.fetchOne(plain)
      await scene.mustStart(again.lease, plain)
      await scene.mustSettle(again.lease, complete(), 'completed')
      await scene.inspector.purge({ jobIds: [lease.jobId], limit: 1 }, operator)
      await scene.driver.prune(limits)
      expect(await recent(scene, past)).toEqual(before)
      await expectTrue(scene)
    },

    'a queue and a type show their own part': async (scene) => {
      const { expect, runtime } = scene
      await scene.insert(newJob(runtime), newJob(runtime, { queue: 'mail' }), newJob(runtime, { type: 'x.v1' }))
      for (const isRolledUp of [false, true]) {
        if (isRolledUp) await scene.driver.prune(limits)
        const count = async (query: Partial<MetricQuery>): Promise<number> =>
          sums(await recent(scene, query))['jobs.enqueued '] ?? 0
        expect(await count({})).toBe(3)
        expect(await count({ queue: 'mail' })).toBe(1)
        expect(await count({ queue: 'default' })).toBe(2)
        expect(await count({ type: 'x.v1' })).toBe(1)
        expect(await count({ queue: 'mail', type: 'x.v1' })).toBe(0)
        expect(await count({ queue: 'nobody' })).toBe(0)
      }
    },

    'more queues and types than there is room for are summed as other': async (scene) => {
      const { expect, runtime } = scene
      const count = maxMetricSeries + 20
      const types = Array.from({ length: count }, (_, n) => `type-${String(n).padStart(4, '0')}.v1`)
      await scene.insert(...types.map((type) => newJob(runtime, { type })))
      await scene.driver.prune(limits)
      await scene.insert(...types.map((type) => newJob(runtime, { type })))
      await scene.driver.prune(limits)
      expect(sums(await recent(scene))['jobs.enqueued ']).toBe(2 * count)
      expect(sums(await recent(scene, { queue: 'other', type: 'other' }))['jobs.enqueued ']).toBe(40)
      expect(sums(await recent(scene, { queue: 'default' }))['jobs.enqueued ']).toBe(2 * maxMetricSeries)
      await scene.elapse(32 * day)
      for (let round = 0; round < 5; round += 1) await scene.driver.prune(limits)
      await scene.add({ type: 'late.v1' })
      await scene.driver.prune(limits)
      expect(sums(await recent(scene, { type: 'late.v1' }))['jobs.enqueued '], 'room is made again').toBe(1)
    },

    'an answer has no more points than the limit, on whole steps': async (scene) => {
      const { expect } = scene
      await ran(scene)
      for (const stepMs of [1, 10 * second, 11 * second, minute, hour]) {
        const series = await recent(scene, { stepMs })
        expect(series.stepMs % (10 * second)).toBe(0)
        expect(series.stepMs).toBeGreaterThanOrEqual(stepMs)
        expect((2 * hour) / series.stepMs).toBeLessThanOrEqual(maxMetricPoints)
        expect(sums(series)).toEqual({ 'jobs.enqueued ': 1, 'jobs.completed ': 1 })
        for (const { atMs } of series.points) expect(atMs % series.stepMs).toBe(0)
      }
      const nothing = await read(scene, { fromMs: 5, toMs: 5 })
      expect(nothing.points).toEqual([])
    },

    ...walks,
    ...places,
    ...ages,
  },
}
