import type { Decision } from '../../api/acts.ts'

interface DecisionWords {
  /** What the person says by it. */
  readonly says: string
  readonly button: string
  /** `resolved as adopted` */
  readonly done: string
}

export const decisions = ['adopt', 'retry', 'abandon', 'compensate'] as const satisfies readonly Decision[]

export const decisionWords: Readonly<Record<Decision, DecisionWords>> = {
  adopt: { says: 'It happened', button: 'Adopt the result', done: 'adopted' },
  retry: { says: 'It did not happen', button: 'Let it run again', done: 'retried' },
  abandon: { says: 'Give it up', button: 'Abandon it', done: 'abandoned' },
  compensate: { says: 'Undo what happened', button: 'Compensate', done: 'compensated' },
}
