import { useQuery } from '@tanstack/react-query'
import { useEffect, useId, useState } from 'react'
import { deadReasons } from '../../../../src/core/job.ts'
import type { JobFilterView, PillarView } from '../../../../src/deck/wire-jobs.ts'
import { typesQuery } from '../../api/queries.ts'
import { type FilterName, statesOf } from './job-filter.ts'

interface FilterBarProps {
  readonly pillar: PillarView
  readonly filter: JobFilterView
  readonly onChange: (name: FilterName, value: string) => void
  readonly onClear: () => void
}

export function FilterBar({ pillar, filter, onChange, onClear }: FilterBarProps) {
  const { data } = useQuery(typesQuery)
  const states = statesOf[pillar]
  const setCount = Object.keys(filter).length
  const [isOpen, setOpen] = useState(false)
  return (
    <form
      className={isOpen ? 'filters is-open' : 'filters'}
      role="search"
      aria-label="Filter jobs"
      onSubmit={(event) => event.preventDefault()}
    >
      <TextFilter name="type" label="Type" filter={filter} onChange={onChange} choices={data?.types} first />
      <button
        type="button"
        className="button filter-toggle"
        aria-expanded={isOpen}
        onClick={() => setOpen((before) => !before)}
      >
        {setCount === 0 ? 'Filters' : `Filters (${setCount})`}
      </button>
      <TextFilter name="queue" label="Queue" filter={filter} onChange={onChange} choices={data?.queues} />
      <TextFilter name="key" label="Key starts with" filter={filter} onChange={onChange} />
      <TextFilter name="tag" label="Tag" filter={filter} onChange={onChange} />
      {states.length === 0 ? null : (
        <ChoiceFilter name="state" label="State" filter={filter} onChange={onChange} choices={states} />
      )}
      {pillar === 'dlq' ? (
        <>
          <ChoiceFilter name="reason" label="Reason" filter={filter} onChange={onChange} choices={deadReasons} />
          <label className="filter filter-more filter-check">
            <input
              type="checkbox"
              checked={filter.review === '1'}
              onChange={({ target }) => onChange('review', target.checked ? '1' : '')}
            />
            waits for a person
          </label>
        </>
      ) : null}
      <TimeFilter name="from" label="Created from" filter={filter} onChange={onChange} />
      <TimeFilter name="before" label="Created before" filter={filter} onChange={onChange} />
      <button type="button" className="button filter-more" onClick={onClear} disabled={setCount === 0}>
        Clear
      </button>
    </form>
  )
}

interface FilterProps {
  readonly name: FilterName
  readonly label: string
  readonly filter: JobFilterView
  readonly onChange: (name: FilterName, value: string) => void
}

interface TextFilterProps extends FilterProps {
  readonly choices?: readonly string[] | undefined
  readonly first?: boolean
}

const restMs = 300

/** Follows the typing after a short rest, so that each letter is no query. */
function TextFilter({ name, label, filter, onChange, choices, first = false }: TextFilterProps) {
  const id = useId()
  const value = filter[name] ?? ''
  const [typed, setTyped] = useState(value)
  const [from, setFrom] = useState(value)
  // The address changed by another way than this field: a link, the back button, or Clear.
  if (value !== from) {
    setFrom(value)
    setTyped(value)
  }
  useEffect(() => {
    if (typed === from) return undefined
    const timer = setTimeout(() => {
      setFrom(typed)
      onChange(name, typed)
    }, restMs)
    return () => clearTimeout(timer)
  }, [typed, from, name, onChange])
  return (
    <div className={first ? 'filter' : 'filter filter-more'}>
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        value={typed}
        autoComplete="off"
        spellCheck={false}
        list={choices === undefined ? undefined : `${id}-list`}
        data-filter={first ? '' : undefined}
        onChange={({ target }) => setTyped(target.value)}
      />
      {choices === undefined ? null : (
        <datalist id={`${id}-list`}>
          {choices.map((choice) => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      )}
    </div>
  )
}

function ChoiceFilter({
  name,
  label,
  filter,
  onChange,
  choices,
}: FilterProps & { readonly choices: readonly string[] }) {
  const id = useId()
  return (
    <div className="filter filter-more">
      <label htmlFor={id}>{label}</label>
      <select id={id} value={filter[name] ?? ''} onChange={({ target }) => onChange(name, target.value)}>
        <option value="">any</option>
        {choices.map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
      </select>
    </div>
  )
}

function TimeFilter({ name, label, filter, onChange }: FilterProps) {
  const id = useId()
  return (
    <div className="filter filter-more filter-time">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="datetime-local"
        value={localTime(filter[name])}
        onChange={({ target }) => onChange(name, target.value === '' ? '' : String(new Date(target.value).getTime()))}
      />
    </div>
  )
}

/** What the field wants: the local time without a zone. */
function localTime(ms: string | undefined): string {
  const date = new Date(ms === undefined ? Number.NaN : Number(ms))
  if (Number.isNaN(date.getTime())) return ''
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
