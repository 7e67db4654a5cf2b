import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type SubmitEvent, useId, useState } from 'react'
import type { ReviewActRequest, ReviewDetail } from '../../../../src/deck/wire-jobs.ts'
import { type Decision, decideReview } from '../../api/acts.ts'
import { JsonEditor } from '../../parts/json-editor.tsx'
import { NoteField } from '../../parts/note-field.tsx'
import { ProblemPanel } from '../../parts/problem-panel.tsx'
import { useOperatorBar } from '../../shell/session.tsx'
import { jsonTrouble } from '../../text/json-text.ts'
import { isInDoubt } from '../job/effect-list.tsx'
import { decisionWords } from './decision-words.ts'
import { DecisionChoice } from './decision-choice.tsx'
import { EffectChoice, effectsToAdopt } from './effect-choice.tsx'
import type { Ending } from './resolved-panel.tsx'

interface DecisionFormProps {
  readonly detail: ReviewDetail
  readonly onEnd: (ending: Ending) => void
}

export function DecisionForm({ detail, onEnd }: DecisionFormProps) {
  const [decision, setDecision] = useState<Decision | null>(null)
  const [note, setNote] = useState('')
  const [result, setResult] = useState('')
  const [effect, setEffect] = useState(0)
  const decide = useDecide(detail, onEnd)
  const missing = whatIsMissing(decision, note, result)
  const bar = useOperatorBar()
  const hasCall = detail.detail.effects.some(isInDoubt)

  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    if (decision === null || missing !== undefined || decide.isPending) return
    const choice = effectsToAdopt(detail)[effect]
    const adoption = decision !== 'adopt' ? {} : { result, ...(choice === undefined ? {} : { effect: choice }) }
    decide.mutate({ decision, request: { revision: detail.review.revision, note: note.trim(), ...adoption } })
  }

  return (
    <form className="panel decide" onSubmit={submit} aria-label="Decide">
      <h2>Decide</h2>
      <DecisionChoice decisions={detail.decisions} chosen={decision} onChoose={setDecision} />
      {decision === 'adopt' ? (
        <>
          <EffectChoice detail={detail} chosen={effect} onChoose={setEffect} />
          <JsonEditor
            label={hasCall ? 'Result of the call, as JSON' : 'Result of the job, as JSON'}
            value={result}
            onChange={setResult}
            rows={5}
          />
        </>
      ) : null}
      {decision === null ? null : <NoteField value={note} onChange={setNote} required />}
      {decide.error === null ? null : <ProblemPanel error={decide.error} />}
      {bar === undefined ? (
        <DecideButton decision={decision} missing={missing} isPending={decide.isPending} />
      ) : (
        <p className="hint">{bar}</p>
      )}
    </form>
  )
}

interface DecideButtonProps {
  readonly decision: Decision | null
  readonly missing: string | undefined
  readonly isPending: boolean
}

function DecideButton({ decision, missing, isPending }: DecideButtonProps) {
  const id = useId()
  return (
    <div className="form-foot">
      <button
        type="submit"
        className="button button-doubt"
        aria-disabled={missing !== undefined || isPending}
        aria-describedby={id}
      >
        {isPending ? 'Working…' : decision === null ? 'Decide' : decisionWords[decision].button}
      </button>
      <span id={id} className="hint">
        {missing}
      </span>
    </div>
  )
}

function whatIsMissing(decision: Decision | null, note: string, result: string): string | undefined {
  if (decision === null) return 'Choose what you found out.'
  if (decision === 'adopt' && jsonTrouble(result) !== undefined)
    return 'The result must be JSON; null if there is none.'
  return note.trim() === '' ? 'Write a note first.' : undefined
}

interface Deciding {
  readonly decision: Decision
  readonly request: ReviewActRequest
}

function useDecide({ review }: ReviewDetail, onEnd: (ending: Ending) => void) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: ({ decision, request }: Deciding) => decideReview(review.id, decision, request),
    onSuccess: async (answer, { decision }) => {
      onEnd(answer.outcome === 'resolved' ? { kind: 'done', decision } : { kind: 'conflict', ...answer })
      await client.invalidateQueries({ queryKey: ['reviews'] })
      await client.invalidateQueries({ queryKey: ['job', review.id] })
    },
  })
}
