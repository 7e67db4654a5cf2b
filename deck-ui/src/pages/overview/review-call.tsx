import { useQuery } from '@tanstack/react-query'
import type { ReviewView } from '../../../../src/deck/wire-jobs.ts'
import { reviewsQuery } from '../../api/queries.ts'
import { Icon } from '../../parts/icon.tsx'
import { reviewPath, RouteLink } from '../../parts/route-link.tsx'
import { Time } from '../../text/clock.tsx'
import { plural } from '../../text/duration.ts'
import { Text } from '../../text/text.tsx'
import { ownerWords, whatIsInDoubt } from '../review/review-words.ts'

const shownCount = 3

/** The first thing a person sees where somebody has to decide. */
export function ReviewCall({ count }: { readonly count: number }) {
  const { data } = useQuery({ ...reviewsQuery(''), enabled: count > 0 })
  if (count === 0) return null
  const first = data?.reviews.slice(0, shownCount) ?? []
  return (
    <section className="panel review-call" aria-label="In doubt">
      <div className="review-call-head">
        <span className="review-call-sign">
          <Icon name="review" />
        </span>
        <div>
          <h2>
            {plural(count, 'operation')} {count === 1 ? 'waits' : 'wait'} for a person
          </h2>
          <p>
            Nobody knows whether {count === 1 ? 'its side effect' : 'their side effects'} happened. Nothing is repeated
            until someone decides.
          </p>
        </div>
        <RouteLink to="/review" className="button button-doubt">
          Decide
          <Icon name="arrow" />
        </RouteLink>
      </div>
      <ul>
        {first.map((review) => (
          <CallRow key={review.id} review={review} />
        ))}
      </ul>
    </section>
  )
}

function CallRow({ review }: { readonly review: ReviewView }) {
  return (
    <li data-row>
      <RouteLink to={reviewPath(review.id)} data-row-link>
        <b>
          <Text>{review.type}</Text>
        </b>{' '}
        <code>
          <Text>{review.key}</Text>
        </code>
      </RouteLink>
      <span className="quiet">
        <Text>{whatIsInDoubt(review)}</Text>
        {review.intentAtMs === null ? null : (
          <>
            , since <Time ms={review.intentAtMs} />
          </>
        )}
        {review.ownerGone === null ? null : `, ${ownerWords(review.ownerGone)}`}
      </span>
    </li>
  )
}
