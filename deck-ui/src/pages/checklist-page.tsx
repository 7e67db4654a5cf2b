import { useQuery } from '@tanstack/react-query'
import type { ChecklistView } from '../../../src/deck/wire.ts'
import { checklistQuery } from '../api/queries.ts'
import { Empty } from '../parts/empty.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { Page } from '../parts/page.tsx'
import { queuePath, RouteLink } from '../parts/route-link.tsx'
import { durationText } from '../text/duration.ts'
import { Text } from '../text/text.tsx'

export function ChecklistPage() {
  const query = useQuery(checklistQuery)
  return (
    <Page title="Checklist">
      <p className="lead">
        What each type answers: its key, where the key is enforced, how long duplicates can arrive, and what happens
        after an interruption. The level follows from the answers, and what was seen of the effects can only lower it.
      </p>
      <Loaded query={query}>
        {({ rows }) =>
          rows.length === 0 ? (
            <Empty title="No type is known yet.">Workers write down their answers when they start.</Empty>
          ) : (
            <ChecklistTable rows={rows} />
          )
        }
      </Loaded>
    </Page>
  )
}

const headings = [
  'Type',
  'Level',
  '1 Key',
  '2 Enforced by',
  '3 Duplicates for',
  '4 When interrupted',
  'Effects',
  'Observed',
]

function ChecklistTable({ rows }: { readonly rows: readonly ChecklistView[] }) {
  return (
    <div className="table-frame">
      <table className="table stacking checklist">
        <caption className="off-screen">Answers of each type</caption>
        <thead>
          <tr>
            {headings.map((heading) => (
              <th key={heading} scope="col">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <ChecklistRow key={row.type} row={row} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function ChecklistRow({ row }: { readonly row: ChecklistView }) {
  const { type, queue, level, key, sideEffects, enforcedBy, whenInterrupted, markerLifeMs, allowRaw } = row
  return (
    <tr data-row>
      <th scope="row">
        <RouteLink to={`/jobs/hot?type=${encodeURIComponent(type)}`} data-row-link>
          <Text>{type}</Text>
        </RouteLink>
        <span className="sub-line quiet">
          in{' '}
          <RouteLink to={queuePath(queue)}>
            <Text>{queue}</Text>
          </RouteLink>
          {allowRaw ? ', takes raw enqueue' : ''}
        </span>
      </th>
      <td data-label="Level">
        <Level level={level} />
        {level === row.declaredLevel ? null : (
          <span className="sub-line quiet">
            declared: <Text>{row.declaredLevel}</Text>
          </span>
        )}
      </td>
      <td data-label="Key">
        <Text>{key}</Text>
      </td>
      <td data-label="Enforced by">
        <Text>{enforcedBy}</Text>
        <span className="sub-line quiet">
          <Text>{sideEffects}</Text>
        </span>
      </td>
      <td data-label="Duplicates for">
        {row.duplicateWindowMs === null ? '–' : durationText(row.duplicateWindowMs)}
        {markerLifeMs === null ? null : <span className="sub-line quiet">marker {durationText(markerLifeMs)}</span>}
      </td>
      <td data-label="When interrupted">
        <Text>{whenInterrupted}</Text>
      </td>
      <td data-label="Effects">
        <Effects effects={row.effects} />
      </td>
      <td data-label="Observed">
        {row.observed === null ? <span className="quiet">not observed</span> : <Text>{row.observed}</Text>}
      </td>
    </tr>
  )
}

function Effects({ effects }: Pick<ChecklistView, 'effects'>) {
  if (effects.length === 0) return <span className="quiet">–</span>
  return (
    <>
      {effects.map(({ name, provider }) => (
        <span key={name} className="sub-line">
          <code>
            <Text>{name}</Text>
          </code>{' '}
          <span className="quiet">
            <Text>{provider}</Text>
          </span>
        </span>
      ))}
    </>
  )
}

/** Four steps from the weakest promise to the strongest. */
function Level({ level }: { readonly level: string }) {
  const rank = rankOf(level)
  return (
    <span className={`level level-${rank}`}>
      <span className="level-bars" aria-hidden="true">
        {[1, 2, 3, 4].map((step) => (
          <i key={step} className={step <= rank ? 'is-on' : undefined} />
        ))}
      </span>
      <Text>{level}</Text>
    </span>
  )
}

function rankOf(level: string): number {
  if (level.startsWith('exactly once')) return 4
  if (level.startsWith('effectively once')) return 3
  return level.startsWith('at most once') ? 2 : 1
}
