import { useQuery } from '@tanstack/react-query'
import type { QueueView } from '../../../../src/deck/wire.ts'
import { queuesQuery } from '../../api/queries.ts'
import { Empty } from '../../parts/empty.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { queuePath, RouteLink } from '../../parts/route-link.tsx'
import { briefCount, durationText, rateText } from '../../text/duration.ts'
import { Text } from '../../text/text.tsx'
import { QueueActs } from './queue-acts.tsx'
import { QueueState, RunningMeter } from './queue-state.tsx'

export function QueuesPage() {
  const queues = useQuery(queuesQuery)
  return (
    <Page title="Queues">
      <Loaded query={queues}>
        {({ queues: rows }) =>
          rows.length === 0 ? (
            <Empty title="No queues yet.">A queue appears with its first job, or when a worker serves it.</Empty>
          ) : (
            <QueueTable queues={rows} />
          )
        }
      </Loaded>
    </Page>
  )
}

function QueueTable({ queues }: { readonly queues: readonly QueueView[] }) {
  return (
    <div className="table-frame">
      <table className="table stacking">
        <caption className="off-screen">Queues</caption>
        <thead>
          <tr>
            <th scope="col">Queue</th>
            <th scope="col">State</th>
            <th scope="col" className="number">
              Waiting
            </th>
            <th scope="col" className="number">
              Lag
            </th>
            <th scope="col">Running / limit</th>
            <th scope="col" className="number">
              Rate
            </th>
            <th scope="col" className="number">
              Scheduled
            </th>
            <th scope="col" className="number">
              Dead
            </th>
            <th scope="col">
              <span className="off-screen">Acts</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {queues.map((queue) => (
            <QueueRow key={queue.name} queue={queue} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function QueueRow({ queue }: { readonly queue: QueueView }) {
  const { name, pendingCount, lagMs, ratePerSecond, scheduledCount, deadCount } = queue
  const at = encodeURIComponent(name)
  return (
    <tr data-row>
      <th scope="row">
        <RouteLink to={queuePath(name)} data-row-link>
          <Text>{name}</Text>
        </RouteLink>
      </th>
      <td data-label="State">
        <QueueState queue={queue} />
      </td>
      <td data-label="Waiting" className="number">
        <RouteLink to={`/jobs/hot?queue=${at}&state=pending`}>{briefCount(pendingCount)}</RouteLink>
      </td>
      <td data-label="Lag" className="number">
        {lagMs === null ? '–' : durationText(lagMs)}
      </td>
      <td data-label="Running / limit">
        <RunningMeter queue={queue} />
      </td>
      <td data-label="Rate" className="number">
        {rateText(ratePerSecond)}
      </td>
      <td data-label="Scheduled" className="number">
        {briefCount(scheduledCount)}
      </td>
      <td data-label="Dead" className="number">
        <RouteLink to={`/jobs/dlq?queue=${at}`} className={deadCount > 0 ? 'tone-text-bad' : ''}>
          {briefCount(deadCount)}
        </RouteLink>
      </td>
      <td className="row-acts">
        <QueueActs queue={queue} />
      </td>
    </tr>
  )
}
