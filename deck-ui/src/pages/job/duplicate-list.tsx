import type { JobSummary } from '../../../../src/deck/wire-jobs.ts'
import { StateChip } from '../../parts/chip.tsx'
import { Section } from '../../parts/page.tsx'
import { jobPath, RouteLink } from '../../parts/route-link.tsx'
import { Time } from '../../text/clock.tsx'

/** Jobs that were skipped because this one holds, or held, their key. */
export function DuplicateList({ jobs }: { readonly jobs: readonly JobSummary[] }) {
  if (jobs.length === 0) return null
  return (
    <Section title={`Duplicates (${jobs.length})`}>
      <ul className="panel plain-list">
        {jobs.map((job) => (
          <li key={job.id}>
            <StateChip state={job.state} inDoubt={job.inDoubt} />{' '}
            <RouteLink to={jobPath(job.id)} className="mono">
              {job.id.slice(0, 8)}…{job.id.slice(-6)}
            </RouteLink>{' '}
            <span className="quiet">
              <Time ms={job.createdAtMs} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  )
}
