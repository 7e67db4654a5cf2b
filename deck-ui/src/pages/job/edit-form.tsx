import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type SubmitEvent, useDeferredValue, useState } from 'react'
import { useLocation } from 'wouter'
import type { JobDetail, ResurrectActRequest } from '../../../../src/deck/wire-jobs.ts'
import { checkPayload, resurrectJob } from '../../api/acts.ts'
import { JsonEditor } from '../../parts/json-editor.tsx'
import { NoteField } from '../../parts/note-field.tsx'
import { useSay } from '../../parts/notices.tsx'
import { ProblemPanel } from '../../parts/problem-panel.tsx'
import { jobPath } from '../../parts/route-link.tsx'
import { jsonTrouble, prettyJson, redactedPaths } from '../../text/json-text.ts'
import { Text } from '../../text/text.tsx'
import { ModeChoice } from './mode-choice.tsx'

interface EditFormProps {
  readonly detail: JobDetail
  readonly payload: string
}

type Mode = ResurrectActRequest['mode']

export function EditForm({ detail, payload }: EditFormProps) {
  const { job, acts } = detail
  const [text, setText] = useState(() => prettyJson(payload))
  const [mode, setMode] = useState<Mode>(() =>
    acts.some(({ act, allowed }) => act === 'resurrect-continue' && allowed) ? 'continue' : 'new-operation',
  )
  const [note, setNote] = useState('')
  const check = usePayloadCheck(job.id, text)
  const save = useResurrect(detail)
  const missing = whatIsMissing(text, note, check.data?.ok)

  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    if (missing !== undefined || save.isPending) return
    save.mutate({ mode, note: note.trim(), payload: text, revision: job.revision })
  }

  return (
    <form onSubmit={submit} className="edit-form">
      <JsonEditor label="Payload" value={text} onChange={setText} errors={check.data?.errors ?? []} rows={18} />
      {check.data?.ok === true && check.isCurrent ? <p className="field-ok">The schema accepts it.</p> : null}
      <RedactedHint text={text} />
      <ModeChoice acts={acts} mode={mode} onChoose={setMode} />
      <NoteField value={note} onChange={setNote} required />
      {check.error === null ? null : <ProblemPanel error={check.error} />}
      {save.error === null ? null : <ProblemPanel error={save.error} />}
      <div className="form-foot">
        <button type="submit" className="button button-main" aria-disabled={missing !== undefined || save.isPending}>
          {save.isPending ? 'Working…' : 'Save and resurrect'}
        </button>
        <span className="hint">{missing}</span>
      </div>
    </form>
  )
}

/** What is hidden here is put back by the server, as long as it stands where it stood. */
function RedactedHint({ text }: { readonly text: string }) {
  const hidden = redactedPaths(text)
  if (hidden.length === 0) return null
  return (
    <p className="hint">
      <code>[redacted]</code> keeps the stored value, where it stands now: <Text>{hidden.join(', ')}</Text>.
    </p>
  )
}

/** Asks the server what the schema says, for the text as it stands when typing rests. */
function usePayloadCheck(id: string, text: string) {
  const rested = useDeferredValue(text)
  const isJson = jsonTrouble(rested) === undefined
  const query = useQuery({
    queryKey: ['check-payload', id, rested],
    queryFn: async ({ signal }) => {
      await new Promise((resolve) => setTimeout(resolve, 250))
      signal.throwIfAborted()
      return checkPayload(id, rested)
    },
    enabled: isJson,
    staleTime: Infinity,
    gcTime: 10_000,
  })
  return { data: isJson ? query.data : undefined, error: query.error, isCurrent: rested === text }
}

function whatIsMissing(text: string, note: string, ok: boolean | undefined): string | undefined {
  if (jsonTrouble(text) !== undefined) return 'It is not JSON yet.'
  if (ok === undefined) return 'Checking…'
  if (!ok) return 'The schema refuses it.'
  return note.trim() === '' ? 'Write a note first.' : undefined
}

function useResurrect({ job }: JobDetail) {
  const client = useQueryClient()
  const say = useSay()
  const [, go] = useLocation()
  return useMutation({
    mutationFn: (request: ResurrectActRequest) => resurrectJob(job.id, request),
    onSuccess: async ({ done, title }) => {
      say({ tone: done ? 'good' : 'warning', text: title })
      await client.invalidateQueries({ queryKey: ['job', job.id] })
      if (done) go(jobPath(job.id))
    },
  })
}
