import { useId } from 'react'
import type { ReviewDetail } from '../../../../src/deck/wire-jobs.ts'
import type { Decision } from '../../api/acts.ts'
import { Text } from '../../text/text.tsx'
import { decisions as order, decisionWords } from './decision-words.ts'

interface DecisionChoiceProps {
  readonly decisions: ReviewDetail['decisions']
  readonly chosen: Decision | null
  readonly onChoose: (decision: Decision) => void
}

/** The four ways out, each with what it would do; one that is barred says why. */
export function DecisionChoice({ decisions, chosen, onChoose }: DecisionChoiceProps) {
  const name = useId()
  return (
    <fieldset className="choices">
      <legend className="off-screen">What did you find out?</legend>
      {order.map((decision) => {
        const view = decisions.find((one) => one.decision === decision)
        const isBarred = view?.allowed !== true
        return (
          <label
            key={decision}
            className={chosen === decision ? 'choice choice-decision is-chosen' : 'choice choice-decision'}
          >
            <input
              type="radio"
              name={name}
              value={decision}
              checked={chosen === decision}
              disabled={isBarred}
              onChange={() => onChoose(decision)}
            />
            <span>
              <b>
                {decisionWords[decision].says} <code className="quiet">{decision}</code>
              </b>
              <span className="quiet">
                {isBarred ? 'Not possible now: ' : ''}
                <Text>{view?.explanation ?? 'The server does not offer it.'}</Text>
              </span>
            </span>
          </label>
        )
      })}
    </fieldset>
  )
}
