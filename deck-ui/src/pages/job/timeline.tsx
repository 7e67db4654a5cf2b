import type { TimelineEntry } from '../../../../src/deck/wire-jobs.ts'
import { Time } from '../../text/clock.tsx'
import { clockText, durationText } from '../../text/duration.ts'
import { Text } from '../../text/text.tsx'

/** Gaps longer than this are said: waiting is part of the story. */
const saidGapMs = 1_000

export function Timeline({ entries }: { readonly entries: readonly TimelineEntry[] }) {
  if (entries.length === 0) return <p className="quiet">Nothing is recorded.</p>
  return (
    <ol className="timeline">
      {entries.map((entry, at) => (
        <Entry key={at} entry={entry} before={entries[at - 1]} />
      ))}
    </ol>
  )
}

interface EntryProps {
  readonly entry: TimelineEntry
  readonly before: TimelineEntry | undefined
}

function Entry({ entry, before }: EntryProps) {
  const { atMs, kind, title, detail, attempt, tone } = entry
  const gap = before === undefined ? 0 : atMs - before.atMs
  const isNewAttempt = attempt !== null && attempt !== before?.attempt && !title.includes(`ttempt ${attempt}`)
  return (
    <li className={`moment moment-${tone} moment-${kind}`}>
      <span className="moment-time">
        <span>{clockText(atMs)}</span>
        <span className="quiet">{gap >= saidGapMs ? `+ ${durationText(gap)}` : ''}</span>
      </span>
      <span className="moment-dot" />
      <div className="moment-text">
        <p>
          <b>
            <Text>{title}</Text>
          </b>
          {isNewAttempt ? <span className="attempt">attempt {attempt}</span> : null}
          <span className="quiet moment-age">
            <Time ms={atMs} />
          </span>
        </p>
        {detail === null ? null : (
          <p className="moment-detail">
            <Text block>{detail}</Text>
          </p>
        )}
      </div>
    </li>
  )
}
