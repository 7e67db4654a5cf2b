import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import type { JobFilterView, PillarView } from '../../../../src/deck/wire-jobs.ts'
import { jobCountQuery, jobsQuery } from '../../api/queries.ts'
import { Empty } from '../../parts/empty.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { RouteLink } from '../../parts/route-link.tsx'
import { limitedCount } from '../../text/duration.ts'
import { BulkBar } from './bulk-bar.tsx'
import { ExportButtons } from './export-buttons.tsx'
import { FilterBar } from './filter-bar.tsx'
import { pillars, searchText, useJobFilter } from './job-filter.ts'
import { JobTable } from './job-table.tsx'

const pillarNames: Readonly<Record<PillarView, string>> = { hot: 'Hot', archive: 'Archive', dlq: 'DLQ' }
const pillarWords: Readonly<Record<PillarView, string>> = { hot: 'active', archive: 'finished', dlq: 'dead' }

export function JobsPage({ pillar }: { readonly pillar: PillarView }) {
  const { filter, change, clear } = useJobFilter(pillar)
  return (
    <Page title="Jobs" aside={<ExportButtons pillar={pillar} filter={filter} />}>
      <PillarTabs pillar={pillar} filter={filter} />
      <FilterBar pillar={pillar} filter={filter} onChange={change} onClear={clear} />
      <JobList key={pillar + JSON.stringify(filter)} pillar={pillar} filter={filter} />
    </Page>
  )
}

interface ListProps {
  readonly pillar: PillarView
  readonly filter: JobFilterView
}

/** The common filters go with the person from tab to tab. */
function PillarTabs({ pillar, filter }: ListProps) {
  const kept: JobFilterView = { ...filter }
  const { state: _state, reason: _reason, review: _review, ...rest } = kept
  return (
    <nav className="tabs" aria-label="Pillars">
      {pillars.map((one) => (
        <RouteLink key={one} to={`/jobs/${one}${searchText(rest)}`} aria-current={one === pillar ? 'page' : undefined}>
          {pillarNames[one]} <span className="quiet">{pillarWords[one]}</span>
        </RouteLink>
      ))}
    </nav>
  )
}

function JobList({ pillar, filter }: ListProps) {
  const query = useInfiniteQuery(jobsQuery(pillar, filter))
  const count = useQuery(jobCountQuery(pillar, filter))
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const jobs = useMemo(() => query.data?.pages.flatMap((page) => page.jobs) ?? [], [query.data])
  const refresh = (): void => {
    void query.refetch()
    void count.refetch()
  }
  return (
    <>
      <div className="list-head">
        <p className="list-count" role="status">
          {count.data === undefined ? '…' : limitedCount(count.data)} <span className="quiet">match</span>
        </p>
        <button type="button" className="icon-button" aria-label="Read again" title="Read again" onClick={refresh}>
          <Icon name="refresh" />
        </button>
        <BulkBar
          pillar={pillar}
          filter={filter}
          selected={selected}
          matching={count.data}
          onDone={() => {
            setSelected(new Set())
            refresh()
          }}
        />
      </div>
      <Loaded query={query} lines={12}>
        {() =>
          jobs.length === 0 && !query.hasNextPage ? (
            <NoJobs pillar={pillar} isFiltered={Object.keys(filter).length > 0} />
          ) : (
            <JobTable
              pillar={pillar}
              jobs={jobs}
              selected={selected}
              onSelect={setSelected}
              hasMore={query.hasNextPage}
              isLoadingMore={query.isFetchingNextPage}
              onMore={() => void query.fetchNextPage()}
            />
          )
        }
      </Loaded>
    </>
  )
}

function NoJobs({ pillar, isFiltered }: { readonly pillar: PillarView; readonly isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No job matches.">Take a filter away, or look in another pillar.</Empty>
  switch (pillar) {
    case 'hot':
      return <Empty title="No active jobs.">Everything that was enqueued has ended.</Empty>
    case 'archive':
      return <Empty title="Nothing in the archive.">Finished jobs stand here until their retention ends.</Empty>
    case 'dlq':
      return <Empty title="No dead jobs.">Nothing failed for good, and nothing waits for a person.</Empty>
  }
}
