import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { useLocation } from 'wouter'
import type { ActAnswer, JobAct, JobDetail } from '../../../../src/deck/wire-jobs.ts'
import { actOnJob, resurrectJob } from '../../api/acts.ts'
import { ActButton } from '../../parts/act-button.tsx'
import { ActDialog } from '../../parts/act-dialog.tsx'
import { useSay } from '../../parts/notices.tsx'
import { jobPath, reviewPath } from '../../parts/route-link.tsx'
import { Text } from '../../text/text.tsx'
import { type ActWords, actWords } from './act-words.ts'

/** What makes no sense for the pillar is left out; what is barred is shown with its reason. */
const actsOf: Readonly<Record<string, readonly JobAct[]>> = {
  hot: ['retry-now', 'cancel'],
  archive: [],
  dlq: ['review', 'resurrect-continue', 'resurrect-new', 'edit', 'purge'],
}

export function JobActs({ detail }: { readonly detail: JobDetail }) {
  const [, go] = useLocation()
  const [open, setOpen] = useState<JobAct | null>(null)
  const { job, acts } = detail
  const wanted = (actsOf[job.pillar] ?? []).filter((act) => act !== 'review' || job.inDoubt)
  const start = (act: JobAct): void => {
    if (act === 'review') go(reviewPath(job.id))
    else if (act === 'edit') go(`${jobPath(job.id)}/edit`)
    else setOpen(act)
  }
  return (
    <span className="acts" role="group" aria-label="Acts on this job">
      {wanted.map((act) => {
        const view = acts.find((one) => one.act === act)
        const why =
          view === undefined ? 'The server does not offer it.' : view.allowed ? null : (view.why ?? 'Not now.')
        return (
          <ActButton key={act} why={why} tone={toneOf(act)} onClick={() => start(act)}>
            {actWords[act].button}
          </ActButton>
        )
      })}
      {open === null ? null : <OneActDialog act={open} detail={detail} onClose={() => setOpen(null)} />}
    </span>
  )
}

function toneOf(act: JobAct): 'danger' | 'doubt' | undefined {
  if (act === 'purge') return 'danger'
  return act === 'review' ? 'doubt' : undefined
}

interface OneActDialogProps {
  readonly act: JobAct
  readonly detail: JobDetail
  readonly onClose: () => void
}

function OneActDialog({ act, detail, onClose }: OneActDialogProps) {
  const { job } = detail
  const words: ActWords = actWords[act]
  const [absence, setAbsence] = useState('')
  const mutation = useAct(act, detail, absence.trim(), onClose)
  const answer = mutation.data
  return (
    <ActDialog
      title={words.title}
      act={words.button}
      danger={act === 'purge'}
      noteRequired={words.noteRequired}
      {...(act === 'purge' ? { phrase: job.id } : {})}
      mutation={mutation}
      onRun={(note) => mutation.mutate(note)}
      onClose={onClose}
    >
      <p>{words.what}</p>
      {act === 'resurrect-new' && job.inDoubt ? <AbsenceField value={absence} onChange={setAbsence} /> : null}
      {answer === undefined || answer.done ? null : (
        <p className="field-error" role="alert">
          <Text>{answer.title}</Text>
        </p>
      )}
    </ActDialog>
  )
}

interface AbsenceFieldProps {
  readonly value: string
  readonly onChange: (value: string) => void
}

/** A new generation repeats the action: that it did not happen has to be known, and how. */
function AbsenceField({ value, onChange }: AbsenceFieldProps) {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>Where you looked, and that it did not happen</label>
      <input
        id={id}
        value={value}
        maxLength={2_000}
        aria-describedby={`${id}-hint`}
        onChange={({ target }) => onChange(target.value)}
      />
      <p id={`${id}-hint`} className="hint">
        The job is in doubt. Without this the new operation is refused; deciding its review is the safer way.
      </p>
    </div>
  )
}

function useAct(act: JobAct, { job }: JobDetail, absence: string, onClose: () => void) {
  const client = useQueryClient()
  const say = useSay()
  const [, go] = useLocation()
  return useMutation({
    mutationFn: (note: string): Promise<ActAnswer> => {
      switch (act) {
        case 'resurrect-continue':
          return resurrectJob(job.id, { mode: 'continue', note, revision: job.revision })
        case 'resurrect-new':
          return resurrectJob(job.id, {
            mode: 'new-operation',
            note,
            revision: job.revision,
            ...(absence === '' ? {} : { absence }),
          })
        case 'purge':
          return actOnJob(job.id, act, { note, confirm: job.id })
        case 'cancel':
        case 'retry-now':
          return actOnJob(job.id, act, { note })
        case 'edit':
        case 'review':
          return Promise.resolve({ done: false, title: 'This act has a page of its own.' })
      }
    },
    onSuccess: async ({ done, title }) => {
      if (!done) return
      say({ tone: 'good', text: title })
      onClose()
      if (act === 'purge') return go('/jobs/dlq')
      await client.invalidateQueries({ queryKey: ['job', job.id] })
    },
  })
}
