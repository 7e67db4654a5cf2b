import { useQuery } from '@tanstack/react-query'
import type { QueueView } from '../../../../src/deck/wire.ts'
import { metricsQuery, queuesQuery } from '../../api/queries.ts'
import { MetricCharts } from '../../charts/metric-charts.tsx'
import { RangePicker, useRange } from '../../charts/range-picker.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { RouteLink } from '../../parts/route-link.tsx'
import { briefCount, durationText, rateText } from '../../text/duration.ts'
import { Text } from '../../text/text.tsx'
import { QueueActs } from './queue-acts.tsx'
import { QueueState, RunningMeter } from './queue-state.tsx'

export function QueuePage({ name }: { readonly name: string }) {
  const queues = useQuery(queuesQuery)
  const [range, chooseRange] = useRange()
  const metrics = useQuery(metricsQuery(range, name))
  const queue = queues.data?.queues.find((one) => one.name === name)
  return (
    <Page
      title={name}
      heading={
        <>
          <span className="quiet">Queue</span> <Text>{name}</Text>
        </>
      }
      aside={queue === undefined ? undefined : <QueueActs queue={queue} />}
    >
      <Loaded query={queues} lines={3}>
        {() => (queue === undefined ? <Empty title="There is no queue of this name." /> : <QueueFacts queue={queue} />)}
      </Loaded>
      <Section title={`Last ${range}`} aside={<RangePicker range={range} onChoose={chooseRange} />}>
        <Loaded query={metrics}>{(data) => <MetricCharts metrics={data} />}</Loaded>
      </Section>
    </Page>
  )
}

function QueueFacts({ queue }: { readonly queue: QueueView }) {
  const at = encodeURIComponent(queue.name)
  return (
    <div className="panel">
      <Facts
        facts={[
          { name: 'State', value: <QueueState queue={queue} /> },
          { name: 'Running', value: <RunningMeter queue={queue} /> },
          {
            name: 'Waiting',
            value: <RouteLink to={`/jobs/hot?queue=${at}&state=pending`}>{briefCount(queue.pendingCount)}</RouteLink>,
          },
          { name: 'Lag', value: queue.lagMs === null ? 'none is late' : durationText(queue.lagMs) },
          { name: 'Rate', value: rateText(queue.ratePerSecond) },
          {
            name: 'Scheduled',
            value: (
              <RouteLink to={`/jobs/hot?queue=${at}&state=scheduled`}>{briefCount(queue.scheduledCount)}</RouteLink>
            ),
          },
          { name: 'Dead', value: <RouteLink to={`/jobs/dlq?queue=${at}`}>{briefCount(queue.deadCount)}</RouteLink> },
        ]}
      />
    </div>
  )
}
