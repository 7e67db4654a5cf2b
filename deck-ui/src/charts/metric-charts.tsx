import { useMemo } from 'react'
import type { MetricSeriesView, Series } from '../../../src/deck/wire.ts'
import { briefCount, durationText, rateText } from '../text/duration.ts'
import type { ChartTone } from './chart-colors.ts'
import { LineChart } from './line-chart.tsx'
import type { Line } from './plot.ts'

const tones: Readonly<Record<string, ChartTone>> = {
  completed: 'good',
  failed: 'warning',
  dead: 'bad',
  skipped: 'neutral',
  p50: 'run',
  p95: 'deep',
  p99: 'bad',
  claimed: 'run',
  completed_duplicate: 'neutral',
  in_progress_duplicate: 'deep',
  released: 'warning',
  complete_conflict: 'bad',
  empty_key: 'doubt',
}

/** Where a place has a colour of its own, a label that is not in the table takes these in turn. */
const turn: readonly ChartTone[] = ['run', 'good', 'deep', 'warning', 'neutral', 'bad', 'doubt']

/** They follow the throughput; beside them the rare outcomes would lie flat on the floor. */
const usualClaims = new Set(['claimed', 'completed'])

function linesOf(series: readonly Series[], isWanted: (label: string) => boolean = () => true): readonly Line[] {
  return series
    .map(({ label, values }, at) => ({ label, values, tone: tones[label] ?? turn[at % turn.length] ?? 'neutral' }))
    .filter(({ label }) => isWanted(label))
}

export function MetricCharts({ metrics }: { readonly metrics: MetricSeriesView }) {
  const { times, throughput, lag, duration, claims, stepMs } = metrics
  const done = useMemo(() => linesOf(throughput, (label) => label === 'completed' || label === 'skipped'), [throughput])
  const bad = useMemo(() => linesOf(throughput, (label) => label !== 'completed' && label !== 'skipped'), [throughput])
  const waits = useMemo(() => linesOf(lag), [lag])
  const runs = useMemo(() => linesOf(duration), [duration])
  const ran = useMemo(() => linesOf(claims, (label) => usualClaims.has(label)), [claims])
  const odd = useMemo(() => linesOf(claims, (label) => !usualClaims.has(label)), [claims])
  const perStep = `count per ${durationText(stepMs)}`
  return (
    <div className="charts">
      <LineChart title="Throughput" unit="jobs per second" times={times} lines={done} format={rateText} />
      <LineChart title="Failures" unit="per second" times={times} lines={bad} format={rateText} />
      <LineChart title="Queue lag" unit="due until started" times={times} lines={waits} format={durationText} />
      <LineChart title="Duration" unit="of handlers" times={times} lines={runs} format={durationText} />
      <LineChart title="Claims" unit={perStep} times={times} lines={ran} format={briefCount} shape="step" />
      <LineChart
        title="Claims: duplicates, releases, trouble"
        unit={perStep}
        times={times}
        lines={odd}
        format={briefCount}
        shape="step"
      />
    </div>
  )
}
