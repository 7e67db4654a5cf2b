/** Filters of the job lists, as they stand in the page's address. */
import { useCallback, useMemo } from 'react'
import { useSearchParams } from 'wouter'
import { archiveOutcomes, hotStates } from '../../../../src/core/job.ts'
import type { JobFilterView, PillarView } from '../../../../src/deck/wire-jobs.ts'

export const pillars = ['hot', 'archive', 'dlq'] as const satisfies readonly PillarView[]

export function isPillar(text: string | null): text is PillarView {
  return pillars.some((pillar) => pillar === text)
}

const filterNames = ['type', 'queue', 'key', 'tag', 'state', 'reason', 'review', 'from', 'before'] as const
export type FilterName = (typeof filterNames)[number]

export const statesOf: Readonly<Record<PillarView, readonly string[]>> = {
  hot: hotStates,
  archive: archiveOutcomes,
  dlq: [],
}

/** Filters that mean something for the pillar; the rest of an address is left out. */
export function filterFor(pillar: PillarView, search: URLSearchParams): JobFilterView {
  const filter: Partial<Record<FilterName, string>> = {}
  for (const name of filterNames) {
    const value = search.get(name)
    if (value === null || value === '') continue
    const fits = pillar === 'dlq' ? name !== 'state' : name !== 'reason' && name !== 'review'
    if (fits) filter[name] = value
  }
  return filter
}

export function useJobFilter(pillar: PillarView) {
  const [search, setSearch] = useSearchParams()
  const filter = useMemo(() => filterFor(pillar, search), [pillar, search])
  const change = useCallback(
    (name: FilterName, value: string): void => {
      setSearch(
        (before) => {
          const after = new URLSearchParams(before)
          if (value === '') after.delete(name)
          else after.set(name, value)
          return after
        },
        { replace: true },
      )
    },
    [setSearch],
  )
  const clear = useCallback(() => setSearch(new URLSearchParams(), { replace: true }), [setSearch])
  return { filter, change, clear }
}

export function searchText(filter: JobFilterView): string {
  const text = new URLSearchParams(filter as Record<string, string>).toString()
  return text === '' ? '' : `?${text}`
}
