import type { ReactNode } from 'react'
import type { JobDetail, MarkerView } from '../../../../src/deck/wire-jobs.ts'
import { type Fact, Facts } from '../../parts/facts.tsx'
import { jobPath, queuePath, RouteLink } from '../../parts/route-link.tsx'
import { Time } from '../../text/clock.tsx'
import { Copyable } from '../../text/copyable.tsx'
import { durationText } from '../../text/duration.ts'
import { Text } from '../../text/text.tsx'

export function JobFacts({ detail }: { readonly detail: JobDetail }) {
  return (
    <>
      <section className="panel" aria-label="Job">
        <h2 className="panel-title">Job</h2>
        <Facts facts={runFacts(detail)} />
      </section>
      <section className="panel" aria-label="Key and claim">
        <h2 className="panel-title">Key and claim</h2>
        <Facts facts={keyFacts(detail)} />
      </section>
    </>
  )
}

function runFacts({ job }: JobDetail): readonly Fact[] {
  const { startedAtMs, finishedAtMs, workerId, traceId, parentId, duplicateOf } = job
  const ran = startedAtMs !== null && finishedAtMs !== null ? finishedAtMs - startedAtMs : null
  return [
    {
      name: 'queue',
      value: (
        <RouteLink to={queuePath(job.queue)}>
          <Text>{job.queue}</Text>
        </RouteLink>
      ),
    },
    { name: 'attempts', value: `${job.attempt} (${job.failureCount} failed, ${job.crashCount} crashed)` },
    { name: 'due', value: <Time ms={job.runAtMs} /> },
    { name: 'started', value: startedAtMs === null ? 'never' : <Time ms={startedAtMs} /> },
    { name: 'finished', value: finishedAtMs === null ? null : <Time ms={finishedAtMs} /> },
    { name: 'last run took', value: ran === null || ran < 0 ? null : durationText(ran) },
    { name: 'priority', value: job.priority === 0 ? null : job.priority },
    { name: 'tags', value: job.tags.length === 0 ? null : <Tags tags={job.tags} /> },
    { name: 'tenant', value: job.tenant === null ? null : <Text>{job.tenant}</Text> },
    { name: 'worker', value: workerId === null ? null : <Copyable value={workerId} what="worker id" short /> },
    { name: 'trace', value: traceId === null ? null : <Copyable value={traceId} what="trace id" short /> },
    { name: 'parent', value: parentId === null ? null : jobLink(parentId) },
    { name: 'duplicate of', value: duplicateOf === null ? null : jobLink(duplicateOf) },
    { name: 'revision', value: job.revision === 0 ? null : job.revision },
  ]
}

function jobLink(id: string): ReactNode {
  return (
    <RouteLink to={jobPath(id)} className="mono">
      {id.slice(0, 8)}…{id.slice(-6)}
    </RouteLink>
  )
}

function Tags({ tags }: { readonly tags: readonly string[] }) {
  return (
    <span className="chips">
      {tags.map((tag) => (
        <RouteLink key={tag} to={`/jobs/hot?tag=${encodeURIComponent(tag)}`} className="tag">
          <Text>{tag}</Text>
        </RouteLink>
      ))}
    </span>
  )
}

function keyFacts({ job, marker }: JobDetail): readonly Fact[] {
  if (job.key === null) return [{ name: 'key', value: 'none: each enqueue is its own operation' }]
  return [
    { name: 'key', value: <Copyable value={job.key} what="key" /> },
    { name: 'scope', value: job.keyScope === null ? null : <Text>{job.keyScope}</Text> },
    { name: 'generation', value: job.generation },
    { name: 'marker', value: marker === null ? 'none' : <Marker marker={marker} ownId={job.id} /> },
    { name: 'hash', value: job.keyHash === null ? null : <Copyable value={job.keyHash} what="key hash" short /> },
  ]
}

const markerWords: Readonly<Record<MarkerView['state'], string>> = {
  completed: 'completed: a repeat is answered with the stored result',
  in_doubt: 'in doubt: held until a person decides',
  terminal: 'terminal: a repeat is answered with the stored error',
  compensated: 'compensated: what happened was undone',
}

function Marker({ marker, ownId }: { readonly marker: MarkerView; readonly ownId: string }) {
  const { state, jobId, expiresAtMs } = marker
  return (
    <>
      {markerWords[state]}
      {expiresAtMs === null ? ', without end' : <>, ends {<Time ms={expiresAtMs} />}</>}
      {jobId === ownId ? null : <> (of job {jobLink(jobId)})</>}
    </>
  )
}
