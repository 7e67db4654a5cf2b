import { useId } from 'react'
import type { ReviewActRequest, ReviewDetail } from '../../../../src/deck/wire-jobs.ts'
import { isInDoubt } from '../job/effect-list.tsx'

type EffectRef = NonNullable<ReviewActRequest['effect']>

/** The effects in doubt, each once: several calls of one effect are one action. */
export function effectsToAdopt({ detail }: ReviewDetail): readonly EffectRef[] {
  const found = new Map<string, EffectRef>()
  for (const effect of detail.effects.filter(isInDoubt)) {
    const { name, item } = effect
    found.set(`${name}\n${item}`, item === '' ? { name } : { name, item })
  }
  return [...found.values()]
}

interface EffectChoiceProps {
  readonly detail: ReviewDetail
  readonly chosen: number
  readonly onChoose: (index: number) => void
}

/** Which effect the result belongs to. The others stay in doubt. */
export function EffectChoice({ detail, chosen, onChoose }: EffectChoiceProps) {
  const id = useId()
  const effects = effectsToAdopt(detail)
  if (effects.length < 2) return null
  return (
    <div className="field">
      <label htmlFor={id}>Whose result it is</label>
      <select id={id} value={chosen} onChange={({ target }) => onChoose(Number(target.value))}>
        {effects.map(({ name, item }, at) => (
          <option key={`${name} ${item ?? ''}`} value={at}>
            {item === undefined ? name : `${name} (${item})`}
          </option>
        ))}
      </select>
      <p className="hint">The others stay in doubt and come back to review.</p>
    </div>
  )
}
