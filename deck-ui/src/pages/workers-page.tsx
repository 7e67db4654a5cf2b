import { useQuery } from '@tanstack/react-query'
import type { WorkerView } from '../../../src/deck/wire.ts'
import { workersQuery } from '../api/queries.ts'
import { Chip } from '../parts/chip.tsx'
import { Empty } from '../parts/empty.tsx'
import { Facts } from '../parts/facts.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { Page } from '../parts/page.tsx'
import { queuePath, RouteLink } from '../parts/route-link.tsx'
import { Time } from '../text/clock.tsx'
import { Copyable } from '../text/copyable.tsx'
import { Text } from '../text/text.tsx'

export function WorkersPage() {
  const query = useQuery(workersQuery)
  return (
    <Page title="Workers">
      <Loaded query={query}>
        {({ workers }) =>
          workers.length === 0 ? (
            <Empty title="No worker is known.">
              Jobs wait until one starts: <code>npx chokaq work</code>, or <code>createWorker</code> in code.
            </Empty>
          ) : (
            <ul className="worker-list">
              {workers.map((worker) => (
                <WorkerCard key={worker.id} worker={worker} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Page>
  )
}

function WorkerCard({ worker }: { readonly worker: WorkerView }) {
  const { id, name, host, pid, state, runningCount, bufferedCount, concurrency, startedAtMs, beatAtMs } = worker
  return (
    <li
      className={state === 'silent' ? 'panel worker worker-silent' : 'panel worker'}
      data-row
      tabIndex={-1}
      data-row-link
    >
      <div className="worker-head">
        <h2>
          <Text>{name}</Text>
        </h2>
        <Chip tone={state === 'alive' ? 'good' : 'bad'}>{state}</Chip>
      </div>
      {state === 'silent' ? (
        <p className="worker-says">
          No beat since <Time ms={beatAtMs} />. Once it counts as dead, the sweep takes its jobs back.
        </p>
      ) : null}
      <p className="meter-with-text">
        <meter min={0} max={Math.max(1, concurrency)} value={runningCount} aria-label="running of its slots" />
        {runningCount} of {concurrency} run, {bufferedCount} in the buffer
      </p>
      <Facts
        facts={[
          { name: 'beat', value: <Time ms={beatAtMs} /> },
          { name: 'up since', value: <Time ms={startedAtMs} /> },
          {
            name: 'process',
            value: (
              <>
                <Text>{host}</Text> · {pid}
              </>
            ),
          },
          { name: 'id', value: <Copyable value={id} what="worker id" short /> },
          { name: 'queues', value: <QueueLinks queues={worker.queues} /> },
        ]}
      />
      <details>
        <summary>{worker.types.length} types</summary>
        <ul className="type-names">
          {worker.types.map((type) => (
            <li key={type}>
              <code>
                <Text>{type}</Text>
              </code>
            </li>
          ))}
        </ul>
      </details>
    </li>
  )
}

function QueueLinks({ queues }: { readonly queues: readonly string[] }) {
  return (
    <span className="chips">
      {queues.map((queue) => (
        <RouteLink key={queue} to={queuePath(queue)} className="tag">
          <Text>{queue}</Text>
        </RouteLink>
      ))}
    </span>
  )
}
