/**
 * A list of jobs of any length. Rows outside the window are not in the page, so the roles of a table are said with
 * attributes, together with the number of each row.
 */
import { useTable } from '@tanstack/react-table'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, useState } from 'react'
import type { JobSummary, PillarView } from '../../../../src/deck/wire-jobs.ts'
import { columnsOf, jobTableFeatures } from './job-columns.tsx'

interface JobTableProps {
  readonly pillar: PillarView
  readonly jobs: readonly JobSummary[]
  readonly selected: ReadonlySet<string>
  readonly onSelect: (selected: ReadonlySet<string>) => void
  readonly hasMore: boolean
  readonly isLoadingMore: boolean
  readonly onMore: () => void
}

export function JobTable(props: JobTableProps) {
  const { pillar, jobs, hasMore, isLoadingMore, onMore } = props
  const table = useJobTable(props)
  const rows = table.getRowModel().rows
  const { box, virtual } = useRows(rows.length)
  const items = virtual.getVirtualItems()
  const lastShown = items.at(-1)?.index ?? 0

  useEffect(() => {
    if (hasMore && !isLoadingMore && lastShown >= jobs.length - 10) onMore()
  }, [hasMore, isLoadingMore, lastShown, jobs.length, onMore])

  return (
    <div className={`grid-table grid-${pillar}`}>
      <div role="table" aria-label="Jobs" aria-rowcount={hasMore ? -1 : jobs.length + 1}>
        <div role="rowgroup" className="grid-head">
          {table.getHeaderGroups().map((group) => (
            <div key={group.id} role="row" className="grid-row" aria-rowindex={1}>
              {group.headers.map((header) => (
                <div key={header.id} role="columnheader" className={`cell-${header.column.id}`}>
                  <table.FlexRender header={header} />
                </div>
              ))}
            </div>
          ))}
        </div>
        <div role="rowgroup" className="grid-body" ref={box} style={{ height: virtual.getTotalSize() }}>
          {items.map(({ index, start, key }) => {
            const row = rows[index]
            if (row === undefined) return null
            return (
              <div
                key={key}
                role="row"
                className={row.getIsSelected() ? 'grid-row is-selected' : 'grid-row'}
                data-row
                data-index={index}
                aria-rowindex={index + 2}
                ref={virtual.measureElement}
                style={{ transform: `translateY(${start - virtual.options.scrollMargin}px)` }}
              >
                {row.getAllCells().map((cell) => (
                  <div key={cell.id} role="cell" className={`cell-${cell.column.id}`}>
                    <table.FlexRender cell={cell} />
                  </div>
                ))}
              </div>
            )
          })}
        </div>
      </div>
      <MoreRows hasMore={hasMore} isLoading={isLoadingMore} onMore={onMore} />
    </div>
  )
}

function useJobTable({ pillar, jobs, selected, onSelect }: JobTableProps) {
  const rowSelection = Object.fromEntries([...selected].map((id) => [id, true as const]))
  return useTable({
    features: jobTableFeatures,
    columns: columnsOf(pillar),
    data: jobs,
    getRowId: ({ id }: JobSummary) => id,
    state: { rowSelection },
    onRowSelectionChange: (change) => {
      const next = typeof change === 'function' ? change(rowSelection) : change
      onSelect(new Set(Object.keys(next)))
    },
  })
}

const rowHeight = 41

function useRows(count: number) {
  const box = useRef<HTMLDivElement>(null)
  const [scrollMargin, setScrollMargin] = useState(0)
  // What stands above the list may change its height: filters wrap, a banner appears.
  useEffect(() => {
    const measure = (): void => {
      if (box.current !== null) setScrollMargin(box.current.getBoundingClientRect().top + scrollY)
    }
    const watch = new ResizeObserver(measure)
    watch.observe(document.body)
    measure()
    return () => watch.disconnect()
  }, [])
  const virtual = useWindowVirtualizer({ count, estimateSize: () => rowHeight, overscan: 12, scrollMargin })
  return { box, virtual }
}

interface MoreRowsProps {
  readonly hasMore: boolean
  readonly isLoading: boolean
  readonly onMore: () => void
}

function MoreRows({ hasMore, isLoading, onMore }: MoreRowsProps) {
  if (!hasMore) return <p className="list-end quiet">That is all.</p>
  return (
    <p className="list-end">
      <button type="button" className="button" disabled={isLoading} onClick={onMore}>
        {isLoading ? 'Loading…' : 'Load more'}
      </button>
    </p>
  )
}
