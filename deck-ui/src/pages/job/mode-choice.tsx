import { useId } from 'react'
import type { ActView, ResurrectActRequest } from '../../../../src/deck/wire-jobs.ts'
import { actWords } from './act-words.ts'

type Mode = ResurrectActRequest['mode']

interface ModeChoiceProps {
  readonly acts: readonly ActView[]
  readonly mode: Mode
  readonly onChoose: (mode: Mode) => void
}

const modes = [
  { mode: 'continue', act: 'resurrect-continue', name: 'Continue the operation' },
  { mode: 'new-operation', act: 'resurrect-new', name: 'As a new operation' },
] as const

export function ModeChoice({ acts, mode, onChoose }: ModeChoiceProps) {
  const name = useId()
  return (
    <fieldset className="choices">
      <legend>How it runs again</legend>
      {modes.map((one) => {
        const view = acts.find(({ act }) => act === one.act)
        const isBarred = view?.allowed !== true
        return (
          <label key={one.mode} className={mode === one.mode ? 'choice is-chosen' : 'choice'}>
            <input
              type="radio"
              name={name}
              checked={mode === one.mode}
              disabled={isBarred}
              onChange={() => onChoose(one.mode)}
            />
            <span>
              <b>{one.name}</b>
              <span className="quiet">{isBarred ? (view?.why ?? 'Not now.') : actWords[one.act].what}</span>
            </span>
          </label>
        )
      })}
      <p className="hint">A payload that changes the key is always a new operation.</p>
    </fieldset>
  )
}
