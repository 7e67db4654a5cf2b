/** What each list of jobs shows. Every text of a user goes through Text. */
import { createColumnHelper, rowSelectionFeature, tableFeatures } from '@tanstack/react-table'
import type { JobSummary, PillarView } from '../../../../src/deck/wire-jobs.ts'
import { Chip, StateChip } from '../../parts/chip.tsx'
import { jobPath, RouteLink } from '../../parts/route-link.tsx'
import { Time } from '../../text/clock.tsx'
import { Text } from '../../text/text.tsx'
import { plainText } from '../../text/visible-controls.ts'

export const jobTableFeatures = tableFeatures({ rowSelectionFeature })
const column = createColumnHelper<typeof jobTableFeatures, JobSummary>()

const select = column.display({
  id: 'select',
  header: ({ table }) => (
    <input
      type="checkbox"
      aria-label="Select all that are loaded"
      checked={table.getIsAllRowsSelected()}
      onChange={table.getToggleAllRowsSelectedHandler()}
    />
  ),
  cell: ({ row }) => (
    <input
      type="checkbox"
      aria-label={`Select job ${row.id}`}
      checked={row.getIsSelected()}
      onChange={row.getToggleSelectedHandler()}
    />
  ),
})

const state = column.display({
  id: 'state',
  header: 'State',
  cell: ({ row: { original } }) => <StateChip state={original.state} inDoubt={original.inDoubt} />,
})

const type = column.display({
  id: 'type',
  header: 'Type',
  cell: ({ row: { original } }) => (
    <RouteLink to={jobPath(original.id)} data-row-link title={plainText(original.id)}>
      <Text>{original.type}</Text>
    </RouteLink>
  ),
})

const key = column.display({
  id: 'key',
  header: 'Key',
  cell: ({ row: { original } }) =>
    original.key === null ? (
      <span className="quiet">–</span>
    ) : (
      <code title={plainText(original.key)}>
        <Text>{original.key}</Text>
      </code>
    ),
})

const queue = column.display({
  id: 'queue',
  header: 'Queue',
  cell: ({ row: { original } }) => (
    <span className="quiet">
      <Text>{original.queue}</Text>
    </span>
  ),
})

const tries = column.display({
  id: 'tries',
  header: 'Attempt',
  cell: ({ row: { original } }) => <Tries job={original} />,
})

function Tries({ job }: { readonly job: JobSummary }) {
  const { attempt, failureCount, crashCount } = job
  return (
    <span title={`${attempt} starts, ${failureCount} failures, ${crashCount} crashes`}>
      {attempt}
      {crashCount === 0 ? null : <span className="tries-crash"> · {crashCount} crashed</span>}
    </span>
  )
}

const reason = column.display({
  id: 'reason',
  header: 'Reason',
  cell: ({ row: { original } }) => (
    <span className="reason-cell" title={plainText(original.message ?? '')}>
      {original.reason === null ? null : <Chip tone={original.inDoubt ? 'doubt' : 'bad'}>{original.reason}</Chip>}
      {original.message === null ? null : (
        <span className="quiet">
          <Text>{original.message}</Text>
        </span>
      )}
    </span>
  ),
})

const message = column.display({
  id: 'message',
  header: 'Last failure',
  cell: ({ row: { original } }) =>
    original.message === null ? null : (
      <span className="quiet" title={plainText(original.message)}>
        <Text>{original.message}</Text>
      </span>
    ),
})

function timeColumn(header: string, of: (job: JobSummary) => number | null) {
  return column.display({
    id: 'time',
    header,
    cell: ({ row: { original } }) => {
      const ms = of(original)
      return ms === null ? <span className="quiet">–</span> : <Time ms={ms} />
    },
  })
}

const columns = {
  hot: [select, state, type, key, queue, tries, message, timeColumn('Due', ({ runAtMs }) => runAtMs)],
  archive: [select, state, type, key, queue, tries, timeColumn('Finished', ({ finishedAtMs }) => finishedAtMs)],
  dlq: [select, type, key, queue, reason, tries, timeColumn('Died', ({ finishedAtMs }) => finishedAtMs)],
}

export function columnsOf(pillar: PillarView) {
  return columns[pillar]
}
