/** One uPlot chart: lines over time. It never writes markup: uPlot sets styles through the object model. */
import uPlot from 'uplot'
import { type ChartTone, resolveColor } from './chart-colors.ts'

export interface Line {
  readonly label: string
  readonly tone: ChartTone
  readonly values: readonly (number | null)[]
}

export interface PlotInput {
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  readonly format: (value: number) => string
  /** Steps for counts, lines for rates and times. */
  readonly shape: 'line' | 'step'
  readonly onPoint: (index: number | null) => void
}

const height = 168
const axisFont = '11px Inter, system-ui, sans-serif'

export function drawPlot(place: HTMLElement, input: PlotInput): uPlot {
  const color = (name: string): string => resolveColor(place, name)
  return new uPlot(optionsOf(place, input, color), dataOf(input), place)
}

export function dataOf({ times, lines }: Pick<PlotInput, 'times' | 'lines'>): uPlot.AlignedData {
  return [times.map((ms) => ms / 1_000), ...lines.map(({ values }) => [...values])]
}

function optionsOf(place: HTMLElement, input: PlotInput, color: (name: string) => string): uPlot.Options {
  const { format, lines, shape, onPoint } = input
  const grid = { stroke: color('--line-soft'), width: 1 }
  const axis = { stroke: color('--ink-quiet'), font: axisFont, ticks: { show: false }, grid }
  const paths = shape === 'step' ? uPlot.paths.stepped?.({ align: 1 }) : undefined
  return {
    width: Math.max(200, place.clientWidth),
    height,
    padding: [8, 20, 0, 0],
    legend: { show: false },
    cursor: { y: false, sync: { key: 'deck' }, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.12 : 1] } },
    axes: [
      { ...axis, size: 28, gap: 4, grid: { show: false }, values: (_plot, splits) => splits.map(timeLabel(splits)) },
      { ...axis, size: 52, gap: 4, values: (_plot, splits) => splits.map((value) => format(value)) },
    ],
    series: [
      {},
      ...lines.map(({ label, tone }) => ({
        label,
        stroke: color(`--chart-${tone}`),
        width: 1.6,
        points: { show: false },
        ...(paths === undefined ? {} : { paths }),
      })),
    ],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
  }
}

function timeLabel(splits: readonly number[]): (seconds: number) => string {
  const span = (splits.at(-1) ?? 0) - (splits[0] ?? 0)
  const format = new Intl.DateTimeFormat(
    'en-GB',
    span > 2 * 86_400 ? { day: '2-digit', month: 'short' } : { hour: '2-digit', minute: '2-digit' },
  )
  return (seconds) => format.format(seconds * 1_000)
}
