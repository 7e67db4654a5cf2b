import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { BulkPreview, BulkTarget, JobSummary } from '../../../../src/deck/wire-jobs.ts'
import { runBulk } from '../../api/acts.ts'
import { bulkPreviewQuery } from '../../api/queries.ts'
import { PhraseField } from '../../parts/act-dialog.tsx'
import { StateChip } from '../../parts/chip.tsx'
import { DialogFrame } from '../../parts/dialog.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { NoteField } from '../../parts/note-field.tsx'
import { limitedCount } from '../../text/duration.ts'
import { Text } from '../../text/text.tsx'
import { BulkFoot } from './bulk-foot.tsx'
import { BulkResult } from './bulk-result.tsx'
import { type BulkRun, useBulkRun } from './bulk-run.ts'
import { bulkWords } from './bulk-words.ts'

interface MatchingDialogProps {
  readonly target: BulkTarget
  readonly onClose: () => void
}

/** An act on everything that matches: what it is, how much, a look at some, a few first, then the rest. */
export function MatchingDialog({ target, onClose }: MatchingDialogProps) {
  const preview = useQuery(bulkPreviewQuery(target))
  const [note, setNote] = useState('')
  const [phrase, setPhrase] = useState('')
  const run = useBulkRun((limit, cursor) =>
    runBulk({
      ...target,
      note: note.trim(),
      limit,
      ...(phrase === '' ? {} : { phrase }),
      ...(cursor === undefined ? {} : { cursor }),
    }),
  )
  const words = bulkWords[target.act]
  return (
    <DialogFrame title={`${words.button}: all that match`} onClose={onClose} wide>
      <Loaded query={preview} lines={4}>
        {(data) => (
          <div className="dialog-body">
            <p>{words.what}</p>
            <FilterWords target={target} preview={data} />
            <SampleRows jobs={data.sample} />
            {run.progress.phase === 'ready' ? (
              <>
                <NoteField value={note} onChange={setNote} required />
                {data.phrase === null ? null : <PhraseField phrase={data.phrase} typed={phrase} onChange={setPhrase} />}
              </>
            ) : null}
            <BulkResult progress={run.progress} total={data.isExact ? data.count : undefined} done={words.done} />
            <MatchingFoot data={data} note={note} phrase={phrase} run={run} target={target} onClose={onClose} />
          </div>
        )}
      </Loaded>
    </DialogFrame>
  )
}

interface MatchingFootProps {
  readonly data: BulkPreview
  readonly note: string
  readonly phrase: string
  readonly run: BulkRun
  readonly target: BulkTarget
  readonly onClose: () => void
}

function MatchingFoot({ data, note, phrase, run, target, onClose }: MatchingFootProps) {
  const missing =
    data.count === 0
      ? 'Nothing matches.'
      : note.trim() === ''
        ? 'Write a note first.'
        : data.phrase !== null && phrase !== data.phrase
          ? 'Type the confirmation first.'
          : undefined
  return (
    <BulkFoot
      run={run}
      act={bulkWords[target.act].button}
      danger={target.act === 'purge'}
      count={limitedCount(data)}
      isSmall={data.isExact && data.count <= 10}
      missing={missing}
      onClose={onClose}
    />
  )
}

function FilterWords({ target, preview }: { readonly target: BulkTarget; readonly preview: BulkPreview }) {
  const parts = Object.entries(target.filter).map(([name, value]) => ({ name, value: <Text>{String(value)}</Text> }))
  return (
    <Facts
      facts={[
        { name: 'jobs', value: <b className="bulk-count">{limitedCount(preview)}</b> },
        ...(parts.length === 0 ? [{ name: 'filter', value: 'none: all of this list' }] : parts),
      ]}
    />
  )
}

function SampleRows({ jobs }: { readonly jobs: readonly JobSummary[] }) {
  if (jobs.length === 0) return null
  return (
    <div className="sample">
      <p className="hint">Some of them:</p>
      <ul>
        {jobs.slice(0, 5).map((job) => (
          <li key={job.id}>
            <StateChip state={job.state} inDoubt={job.inDoubt} /> <Text>{job.type}</Text>{' '}
            <code>
              <Text>{job.key ?? job.id}</Text>
            </code>
          </li>
        ))}
      </ul>
    </div>
  )
}
