import type { EffectView, ReviewDetail } from '../../../../src/deck/wire-jobs.ts'
import { Icon } from '../../parts/icon.tsx'
import { Time } from '../../text/clock.tsx'
import { Text } from '../../text/text.tsx'
import { isInDoubt } from '../job/effect-list.tsx'
import { questionFor } from './review-words.ts'

/** What is known and what is not, in the sentences a person would say. */
export function Verdict({ detail }: { readonly detail: ReviewDetail }) {
  const { review } = detail
  const call = detail.detail.effects.find(isInDoubt)
  return (
    <section className="panel verdict" aria-label="What is known">
      {call === undefined ? <HandlerSentence detail={detail} /> : <CallSentence call={call} />}
      {review.message === '' ? null : (
        <p className="quiet">
          <Text block>{review.message}</Text>
        </p>
      )}
      <p className="verdict-question">{questionFor(review.reason, call !== undefined)}</p>
      {review.ownerGone === false ? (
        <p className="verdict-wait">
          <Icon name="warning" />
          The worker that made the call is not proven dead. A late call may still arrive, so what the provider shows now
          may not be the end. Look again later, if you can.
        </p>
      ) : null}
    </section>
  )
}

function CallSentence({ call }: { readonly call: EffectView }) {
  const { name, item, provider, openedAtMs, state, providerKey } = call
  return (
    <p className="verdict-line">
      <b>
        <Text>{item === '' ? name : `${name} (${item})`}</Text>
      </b>{' '}
      {provider === '' ? null : (
        <>
          at <Text>{provider}</Text>{' '}
        </>
      )}
      was about to be called <Time ms={openedAtMs} />
      {providerKey === null ? ', without a provider key' : null}.{' '}
      {state === 'open' ? 'No outcome was stored.' : 'The call ended without telling what it did.'} Nobody knows whether
      it happened.
    </p>
  )
}

function HandlerSentence({ detail: { review } }: { readonly detail: ReviewDetail }) {
  return (
    <p className="verdict-line">
      The handler was started {review.attempts === 1 ? 'once' : `${review.attempts} times`}
      {review.crashes === 0 ? '' : ` and its worker died ${review.crashes === 1 ? 'once' : `${review.crashes} times`}`}.
      Nobody knows how far it got.
    </p>
  )
}
