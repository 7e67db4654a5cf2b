import { useEffect, useRef, useState } from 'react'
import type uPlot from 'uplot'
import { exactText } from '../text/duration.ts'
import { type Line, dataOf, drawPlot } from './plot.ts'

interface LineChartProps {
  readonly title: string
  /** What the numbers are: `jobs per second`. */
  readonly unit: string
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  readonly format: (value: number) => string
  readonly shape?: 'line' | 'step'
}

export function LineChart(props: LineChartProps) {
  const { title, unit, times, lines, format } = props
  const [index, setIndex] = useState<number | null>(null)
  const place = usePlot(props, setIndex)
  const isEmpty = lines.every(({ values }) => values.every((value) => value === null || value === 0))
  return (
    <figure className="panel chart">
      <figcaption>
        <h3>{title}</h3>
        <span className="quiet">{unit}</span>
      </figcaption>
      <ul className="legend">
        {lines.map((line) => (
          <li key={line.label}>
            <span className={`swatch swatch-${line.tone}`} />
            {line.label} <b>{valueText(shownValue(line, index), format)}</b>
          </li>
        ))}
      </ul>
      <div className="plot" ref={place} role="img" aria-label={spoken(title, unit, lines, format)}>
        {isEmpty ? <p className="plot-empty">Nothing in this range.</p> : null}
      </div>
      <NumbersBehind title={title} times={times} lines={lines} format={format} />
    </figure>
  )
}

/** Draws when the lines or the colours change, and follows the width; new values go into the chart that stands. */
function usePlot(props: LineChartProps, onPoint: (index: number | null) => void) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(null)
  const { lines, format, times, shape = 'line' } = props
  const [paint, setPaint] = useState(0)
  const shapeKey = lines.map(({ label }) => label).join('\n') + shape

  useEffect(() => {
    const repaint = (): void => setPaint((count) => count + 1)
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', repaint)
    addEventListener('deck-theme', repaint)
    return () => {
      dark.removeEventListener('change', repaint)
      removeEventListener('deck-theme', repaint)
    }
  }, [])

  useEffect(() => {
    const box = place.current
    if (box === null) return undefined
    const drawn = drawPlot(box, { times, lines, format, shape, onPoint })
    plot.current = drawn
    const resize = new ResizeObserver(() =>
      drawn.setSize({ width: Math.max(200, box.clientWidth), height: drawn.height }),
    )
    resize.observe(box)
    return () => {
      resize.disconnect()
      drawn.destroy()
      plot.current = null
    }
    // The values are followed below: a new chart for each of them would flicker and lose the cursor.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [shapeKey, paint])

  useEffect(() => {
    plot.current?.setData(dataOf({ times, lines }))
  }, [times, lines])
  return place
}

/** Under the cursor, or else the last step that is known. */
function shownValue({ values }: Line, index: number | null): number | null {
  const at = index === null ? values.findLastIndex((value) => value !== null) : index
  return values[at] ?? null
}

function valueText(value: number | null, format: (value: number) => string): string {
  return value === null ? '–' : format(value)
}

function spoken(title: string, unit: string, lines: readonly Line[], format: (value: number) => string): string {
  const now = lines.map((line) => `${line.label} ${valueText(shownValue(line, null), format)}`).join(', ')
  return `${title}, ${unit}. Last step: ${now}.`
}

type NumbersProps = Pick<LineChartProps, 'title' | 'times' | 'lines' | 'format'>

function NumbersBehind({ title, times, lines, format }: NumbersProps) {
  const [open, setOpen] = useState(false)
  return (
    <details className="numbers" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Numbers</summary>
      {open ? (
        <div className="numbers-scroll" tabIndex={0} role="region" aria-label={`${title}, numbers`}>
          <table>
            <thead>
              <tr>
                <th scope="col">From</th>
                {lines.map(({ label }) => (
                  <th key={label} scope="col">
                    {label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.map((ms, at) => (
                <tr key={ms}>
                  <th scope="row">{exactText(ms)}</th>
                  {lines.map((line) => (
                    <td key={line.label}>{valueText(line.values[at] ?? null, format)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </details>
  )
}
