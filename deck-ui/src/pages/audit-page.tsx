import { useInfiniteQuery } from '@tanstack/react-query'
import { type SubmitEvent, useId } from 'react'
import { useSearchParams } from 'wouter'
import { auditQuery } from '../api/queries.ts'
import { Empty } from '../parts/empty.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { Page } from '../parts/page.tsx'
import { AuditRows } from './audit-rows.tsx'

export function AuditPage() {
  const [search] = useSearchParams()
  const subject = search.get('subject') ?? ''
  const query = useInfiniteQuery(auditQuery(subject))
  const rows = query.data?.pages.flatMap((page) => page.rows) ?? []
  return (
    <Page title="Audit">
      <SubjectFilter key={subject} subject={subject} />
      <Loaded query={query}>
        {() =>
          rows.length === 0 ? (
            <Empty title={subject === '' ? 'Nobody has done anything yet.' : 'Nothing is recorded about it.'}>
              Every act of a person is kept here with its note.
            </Empty>
          ) : (
            <AuditRows rows={rows} />
          )
        }
      </Loaded>
      {query.hasNextPage ? (
        <p className="list-end">
          <button
            type="button"
            className="button"
            disabled={query.isFetchingNextPage}
            onClick={() => void query.fetchNextPage()}
          >
            {query.isFetchingNextPage ? 'Loading…' : 'Load older'}
          </button>
        </p>
      ) : null}
    </Page>
  )
}

function SubjectFilter({ subject }: { readonly subject: string }) {
  const [, setSearch] = useSearchParams()
  const id = useId()
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const value = new FormData(event.currentTarget).get('subject')
    setSearch(typeof value === 'string' && value.trim() !== '' ? { subject: value.trim() } : {})
  }
  return (
    <form className="filters" role="search" aria-label="Filter the audit log" onSubmit={submit}>
      <div className="filter filter-wide">
        <label htmlFor={id}>Job id or queue</label>
        <input id={id} name="subject" defaultValue={subject} autoComplete="off" spellCheck={false} data-filter />
      </div>
      <button type="submit" className="button">
        Filter
      </button>
      {subject === '' ? null : (
        <button type="button" className="button" onClick={() => setSearch({})}>
          Clear
        </button>
      )}
    </form>
  )
}
