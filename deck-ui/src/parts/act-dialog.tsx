import { type ReactNode, type SubmitEvent, useId, useState } from 'react'
import { Text } from '../text/text.tsx'
import { DialogFrame } from './dialog.tsx'
import { NoteField } from './note-field.tsx'
import { ProblemPanel } from './problem-panel.tsx'

interface ActDialogProps {
  readonly title: string
  /** The word on the button. */
  readonly act: string
  readonly danger?: boolean
  readonly noteRequired: boolean
  /** What a person must type before a destructive act. */
  readonly phrase?: string
  /** Why it cannot be sent as it stands. */
  readonly why?: string | undefined
  readonly mutation: { readonly isPending: boolean; readonly error: unknown }
  readonly onRun: (note: string) => void
  readonly onClose: () => void
  /** What it will do. */
  readonly children: ReactNode
}

/** One act, in one frame: what it does, why it is done, and what must be typed where it destroys something. */
export function ActDialog(props: ActDialogProps) {
  const { title, act, danger = false, noteRequired, phrase, mutation, onRun, onClose, children } = props
  const [note, setNote] = useState('')
  const [typed, setTyped] = useState('')
  const missing =
    props.why ?? whatIsMissing(noteRequired && note.trim() === '', phrase !== undefined && typed !== phrase)
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    if (missing === undefined && !mutation.isPending) onRun(note.trim())
  }
  return (
    <DialogFrame title={title} onClose={onClose}>
      <form onSubmit={submit} className="dialog-body">
        {children}
        <NoteField value={note} onChange={setNote} required={noteRequired} />
        {phrase === undefined ? null : <PhraseField phrase={phrase} typed={typed} onChange={setTyped} />}
        {mutation.error === null ? null : <ProblemPanel error={mutation.error} />}
        <div className="dialog-foot">
          <span className="hint">{missing}</span>
          <button type="button" className="button" onClick={onClose}>
            Not now
          </button>
          <button
            type="submit"
            className={danger ? 'button button-danger' : 'button button-main'}
            aria-disabled={missing !== undefined || mutation.isPending}
          >
            {mutation.isPending ? 'Working…' : act}
          </button>
        </div>
      </form>
    </DialogFrame>
  )
}

function whatIsMissing(note: boolean, phrase: boolean): string | undefined {
  if (note) return 'Write a note first.'
  return phrase ? 'Type the confirmation first.' : undefined
}

interface PhraseFieldProps {
  readonly phrase: string
  readonly typed: string
  readonly onChange: (typed: string) => void
}

export function PhraseField({ phrase, typed, onChange }: PhraseFieldProps) {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>
        Type{' '}
        <code className="phrase">
          <Text>{phrase}</Text>
        </code>{' '}
        to confirm
      </label>
      <input
        id={id}
        className="mono"
        autoComplete="off"
        spellCheck={false}
        value={typed}
        onChange={({ target }) => onChange(target.value)}
      />
    </div>
  )
}
