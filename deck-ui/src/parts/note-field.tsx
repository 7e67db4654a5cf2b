import { useId } from 'react'

interface NoteFieldProps {
  readonly value: string
  readonly onChange: (value: string) => void
  readonly required: boolean
}

/** Why a person does this. It is kept in the audit log under their name. */
export function NoteField({ value, onChange, required }: NoteFieldProps) {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>Note{required ? '' : ' (optional)'}</label>
      <textarea
        id={id}
        rows={2}
        value={value}
        required={required}
        maxLength={1000}
        aria-describedby={`${id}-hint`}
        onChange={({ target }) => onChange(target.value)}
      />
      <p id={`${id}-hint`} className="hint">
        Why you do it. It is kept in the audit log with your name.
      </p>
    </div>
  )
}
