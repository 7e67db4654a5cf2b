import { useSearchParams } from 'wouter'
import { type Range, ranges } from '../../../src/deck/wire.ts'

/** The range of the charts, kept in the address. */
export function useRange(): readonly [Range, (range: Range) => void] {
  const [search, setSearch] = useSearchParams()
  const range = ranges.find((one) => one === search.get('range')) ?? '1h'
  const choose = (next: Range): void => {
    setSearch(
      (before) => {
        const after = new URLSearchParams(before)
        after.set('range', next)
        return after
      },
      { replace: true },
    )
  }
  return [range, choose]
}

interface RangePickerProps {
  readonly range: Range
  readonly onChoose: (range: Range) => void
}

export function RangePicker({ range, onChoose }: RangePickerProps) {
  return (
    <div className="segments" role="radiogroup" aria-label="Range">
      {ranges.map((one) => (
        <button key={one} type="button" role="radio" aria-checked={one === range} onClick={() => onChoose(one)}>
          {one}
        </button>
      ))}
    </div>
  )
}
