/** Invented curves and live numbers. */
import type { LiveState, MetricSeriesView, Overview, Range, Series } from '../../src/deck/wire.ts'
import { jobs, queues, seeded, startedAtMs, workers } from './mock-data.ts'

const spans: Readonly<Record<Range, { readonly lengthMs: number; readonly stepMs: number }>> = {
  '15m': { lengthMs: 900_000, stepMs: 10_000 },
  '1h': { lengthMs: 3_600_000, stepMs: 30_000 },
  '6h': { lengthMs: 21_600_000, stepMs: 180_000 },
  '24h': { lengthMs: 86_400_000, stepMs: 600_000 },
  '7d': { lengthMs: 604_800_000, stepMs: 3_600_000 },
}

export function metricsOf(range: Range): MetricSeriesView {
  const { lengthMs, stepMs } = spans[range]
  const last = Math.floor(Date.now() / stepMs) * stepMs
  const times = Array.from({ length: lengthMs / stepMs }, (_, at) => last - lengthMs + (at + 1) * stepMs)
  const wave = (seed: number, base: number, swing: number): number[] => {
    const random = seeded(seed)
    return times.map((_, at) => Math.max(0, base + swing * Math.sin(at / 9 + seed) + (random() - 0.5) * swing))
  }
  const bump = (values: number[], by: number): number[] =>
    values.map((value, at) => (at > times.length * 0.7 && at < times.length * 0.8 ? value + by : value))
  const series = (label: string, values: readonly number[]): Series => ({ label, values })
  return {
    stepMs,
    times,
    throughput: [
      series('completed', wave(1, 58, 12)),
      series('failed', bump(wave(2, 0.6, 0.5), 4)),
      series('dead', bump(wave(3, 0.02, 0.03), 0.4)),
      series('skipped', wave(4, 1.2, 0.8)),
    ],
    lag: [
      series('p50', bump(wave(5, 40, 16), 120)),
      series('p95', bump(wave(6, 210, 60), 900)),
      series('p99', bump(wave(7, 420, 120), 1_800)),
    ],
    duration: [series('p50', wave(8, 120, 20)), series('p95', wave(9, 640, 90)), series('p99', wave(10, 1_400, 300))],
    claims: [
      series('claimed', wave(11, 1_600, 200).map(Math.round)),
      series('completed', wave(12, 1_560, 200).map(Math.round)),
      series('completed_duplicate', wave(13, 30, 20).map(Math.round)),
      series('in_progress_duplicate', wave(14, 6, 6).map(Math.round)),
      series('released', bump(wave(15, 10, 8), 90).map(Math.round)),
      series(
        'complete_conflict',
        times.map(() => 0),
      ),
      series(
        'empty_key',
        times.map((_, at) => (at % 31 === 0 ? 1 : 0)),
      ),
    ],
  }
}

export function liveState(): LiveState {
  const sum = (of: 'scheduledCount' | 'pendingCount' | 'fetchedCount' | 'processingCount' | 'deadCount'): number =>
    queues.reduce((total, queue) => total + queue[of], 0)
  const seconds = Math.floor((Date.now() - startedAtMs) / 1_000)
  return {
    atMs: Date.now(),
    scheduledCount: sum('scheduledCount'),
    pendingCount: sum('pendingCount') + (seconds % 7),
    fetchedCount: sum('fetchedCount'),
    processingCount: sum('processingCount') - (seconds % 3),
    deadCount: sum('deadCount'),
    reviewCount: jobs.dlq.filter(({ inDoubt }) => inDoubt).length,
    oldestLagMs: 402_000 + seconds * 1_000,
    workerCount: workers.filter(({ state }) => state === 'alive').length,
    silentWorkerCount: workers.filter(({ state }) => state === 'silent').length,
    pausedQueueCount: queues.filter(({ paused }) => paused).length,
    totals: { completed: 1_204_331 + seconds * 58, dead: 643, skipped: 21_002 },
    claims: { claimed: 1_230_000 },
    health: 'unhealthy',
    healthReasons: ['queue imports: the oldest due job has waited for 6m (limit 10s)'],
  }
}

export function overviewOf(range: Range): Overview {
  return {
    ...metricsOf(range),
    live: liveState(),
    sums: {
      completed: 209_412,
      failed: 2_381,
      dead: 27,
      skipped: 4_120,
      retried: 2_352,
      rescued: 14,
      deduplicated: 302,
    },
    attention: [
      {
        level: 'critical',
        text: '3 jobs wait for a decision: nobody knows whether the side effect happened',
        href: 'review',
      },
      { level: 'critical', text: 'Queue imports has 17 jobs, and no live worker serves it', href: 'queues/imports' },
      { level: 'warning', text: 'Worker worker-eu-2 has been silent for 42s, with 14 jobs', href: 'workers' },
      { level: 'warning', text: 'Queue webhooks is paused, with 1204 jobs', href: 'queues/webhooks' },
      { level: 'notice', text: '27 jobs died within the last hour', href: 'jobs?pillar=dlq' },
    ],
  }
}
