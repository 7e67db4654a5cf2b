import { type KeyboardEvent, type UIEvent, useId, useRef, useState } from 'react'
import { jsonTrouble, prettyJson } from '../text/json-text.ts'
import { Text } from '../text/text.tsx'

interface JsonEditorProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  /** What the schema says against it. */
  readonly errors?: readonly { readonly path: string; readonly message: string }[]
  readonly rows?: number
}

/** A plain text field for JSON, with numbers of lines and the place of what is wrong. */
export function JsonEditor({ label, value, onChange, errors = [], rows = 14 }: JsonEditorProps) {
  const id = useId()
  const numbers = useRef<HTMLDivElement>(null)
  const trouble = jsonTrouble(value)
  const lines = value.split('\n').length
  const follow = ({ currentTarget }: UIEvent): void => {
    if (numbers.current !== null) numbers.current.scrollTop = currentTarget.scrollTop
  }
  const keys = useIndentKeys(value, onChange)
  const isWrong = trouble !== undefined || errors.length > 0
  return (
    <div className="field">
      <div className="editor-head">
        <label htmlFor={id}>{label}</label>
        <button
          type="button"
          className="button button-small"
          disabled={trouble !== undefined}
          onClick={() => onChange(prettyJson(value))}
        >
          Format
        </button>
      </div>
      <div className={isWrong ? 'editor is-wrong' : 'editor'}>
        <div className="editor-lines" ref={numbers} aria-hidden="true">
          {Array.from({ length: lines }, (_, at) => (
            <span key={at} className={trouble?.line === at + 1 ? 'wrong-line' : undefined}>
              {at + 1}
            </span>
          ))}
        </div>
        <textarea
          id={id}
          className="mono"
          rows={rows}
          value={value}
          wrap="off"
          spellCheck={false}
          autoCapitalize="off"
          aria-invalid={isWrong}
          aria-describedby={`${id}-state`}
          onScroll={follow}
          onKeyDown={keys}
          onChange={({ target }) => onChange(target.value)}
        />
      </div>
      <div id={`${id}-state`} role="status">
        {trouble === undefined ? null : (
          <p className="field-error">
            Line {trouble.line}, column {trouble.column}: <Text>{trouble.message}</Text>
          </p>
        )}
        {errors.map(({ path, message }) => (
          <p key={path + message} className="field-error">
            {path === '' ? null : (
              <code>
                <Text>{path}</Text>
              </code>
            )}{' '}
            <Text>{message}</Text>
          </p>
        ))}
      </div>
    </div>
  )
}

/** Tab indents; after Escape it leaves the field, so that the keyboard is not caught in it. */
function useIndentKeys(value: string, onChange: (value: string) => void) {
  const [leaves, setLeaves] = useState(false)
  return (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    if (event.key === 'Escape') {
      event.stopPropagation()
      return setLeaves(true)
    }
    if (event.key !== 'Tab' || event.shiftKey || leaves) {
      if (event.key !== 'Shift') setLeaves(false)
      return
    }
    event.preventDefault()
    const { currentTarget: area } = event
    const { selectionStart, selectionEnd } = area
    onChange(`${value.slice(0, selectionStart)}  ${value.slice(selectionEnd)}`)
    requestAnimationFrame(() => area.setSelectionRange(selectionStart + 2, selectionStart + 2))
  }
}
