import type { AuditView } from '../../../src/deck/wire.ts'
import { jobPath, RouteLink } from '../parts/route-link.tsx'
import { Time } from '../text/clock.tsx'
import { exactText } from '../text/duration.ts'
import { JsonView } from '../text/json-view.tsx'
import { Text } from '../text/text.tsx'

export function AuditRows({ rows }: { readonly rows: readonly AuditView[] }) {
  return (
    <ol className="audit">
      {rows.map((row) => (
        <AuditRow key={row.id} row={row} />
      ))}
    </ol>
  )
}

function AuditRow({ row }: { readonly row: AuditView }) {
  const { actor, act, subject, note, detail, atMs } = row
  return (
    <li className="panel" data-row>
      <p className="audit-head">
        <b>
          <Text>{actor}</Text>
        </b>{' '}
        <code>
          <Text>{act}</Text>
        </code>{' '}
        <Subject subject={subject} />
        <span className="quiet audit-time">
          <Time ms={atMs} /> · {exactText(atMs)}
        </span>
      </p>
      {note === '' ? null : (
        <p className="audit-note">
          <Text block>{note}</Text>
        </p>
      )}
      {detail === '' || detail === '{}' || detail === 'null' ? null : (
        <details>
          <summary>Detail</summary>
          <JsonView json={detail} what="detail" />
        </details>
      )}
    </li>
  )
}

const jobId = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

function Subject({ subject }: { readonly subject: string }) {
  const id = subject.replace(/^job[: ]/, '')
  if (jobId.test(id)) {
    return (
      <RouteLink to={jobPath(id)} className="mono" data-row-link>
        {id}
      </RouteLink>
    )
  }
  return (
    <RouteLink to={`/audit?subject=${encodeURIComponent(subject)}`} data-row-link>
      <Text>{subject}</Text>
    </RouteLink>
  )
}
