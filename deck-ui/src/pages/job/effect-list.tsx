import type { EffectView } from '../../../../src/deck/wire-jobs.ts'
import { Chip, type Tone } from '../../parts/chip.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Time } from '../../text/clock.tsx'
import { Copyable } from '../../text/copyable.tsx'
import { durationText } from '../../text/duration.ts'
import { JsonView } from '../../text/json-view.tsx'
import { Text } from '../../text/text.tsx'
import { ErrorCard } from './error-list.tsx'

/** Each recorded call: what was about to happen, and what came of it. */
export function EffectList({ effects }: { readonly effects: readonly EffectView[] }) {
  return (
    <ul className="effects">
      {effects.map((effect) => (
        <EffectCard key={effect.id} effect={effect} />
      ))}
    </ul>
  )
}

export function isInDoubt({ state }: EffectView): boolean {
  return state === 'open' || state === 'ambiguous'
}

function EffectCard({ effect }: { readonly effect: EffectView }) {
  const { kind, name, item, state, provider, generation, input, result, error } = effect
  const doubt = isInDoubt(effect)
  return (
    <li className={doubt ? 'panel effect effect-doubt' : 'panel effect'}>
      <div className="effect-head">
        <h3>
          <Text>{name}</Text>
          {item === '' ? null : (
            <code>
              <Text>{item}</Text>
            </code>
          )}
        </h3>
        <span className="quiet">
          {kind}
          {provider === '' ? null : (
            <>
              {' at '}
              <Text>{provider}</Text>
            </>
          )}
          {generation === 1 ? null : `, generation ${generation}`}
        </span>
        <Chip tone={toneOf(state)}>{doubt ? `${state}: in doubt` : state}</Chip>
      </div>
      <Span effect={effect} />
      <p className={doubt ? 'effect-says' : 'quiet effect-says'}>{wordsOf(effect)}</p>
      <EffectFacts effect={effect} />
      <details open={doubt}>
        <summary>Input{result === null ? '' : ' and result'}</summary>
        <JsonView json={input} what={`input of ${name}`} />
        {result === null ? null : <JsonView json={result} what={`result of ${name}`} />}
      </details>
      {error === null ? null : <ErrorCard error={error} />}
    </li>
  )
}

/** From intent to outcome. Where there is no outcome, the bar has no end. */
function Span({ effect }: { readonly effect: EffectView }) {
  const { openedAtMs, closedAtMs } = effect
  const doubt = isInDoubt(effect)
  return (
    <div className={doubt ? 'span span-doubt' : `span span-${toneOf(effect.state)}`}>
      <span className="span-end">
        intent <Time ms={openedAtMs} />
      </span>
      <span className="span-bar" />
      <span className="span-end">
        {closedAtMs === null ? (
          'no outcome'
        ) : (
          <>
            {effect.state === 'ambiguous' ? 'ended unknown' : 'outcome'} after{' '}
            {durationText(Math.max(0, closedAtMs - openedAtMs))}
          </>
        )}
      </span>
    </div>
  )
}

function EffectFacts({ effect }: { readonly effect: EffectView }) {
  const { kind, providerKey, attempt, workerId } = effect
  const acts = kind === 'effect' || kind === 'compensation'
  return (
    <Facts
      facts={[
        {
          name: 'provider key',
          value: providerKey === null ? acts ? 'none' : null : <Copyable value={providerKey} what="provider key" />,
        },
        { name: 'attempt', value: attempt },
        { name: 'worker', value: <Copyable value={workerId} what="worker id" short /> },
      ]}
    />
  )
}

function wordsOf({ state, ownerGone, replayed }: EffectView): string {
  switch (state) {
    case 'open':
      return ownerGone
        ? 'No outcome. Its worker is proven dead, so no late call of it can arrive.'
        : 'No outcome. Its worker is not proven dead, so a late call of it may still arrive.'
    case 'ambiguous':
      return replayed
        ? 'The call ended without telling what it did, and the provider repeats its stored error.'
        : 'The call ended without telling what it did.'
    case 'not-executed':
      return 'It did not happen.'
    case 'done':
      return 'It happened, once, and its result is kept: it is never repeated.'
    case 'terminal':
      return 'The provider declined it for good.'
    case 'superseded':
      return 'The same action as a later call.'
    case 'abandoned':
      return 'A person gave it up.'
    default:
      return state
  }
}

function toneOf(state: string): Tone {
  switch (state) {
    case 'done':
      return 'good'
    case 'open':
    case 'ambiguous':
      return 'doubt'
    case 'terminal':
      return 'bad'
    default:
      return 'neutral'
  }
}
