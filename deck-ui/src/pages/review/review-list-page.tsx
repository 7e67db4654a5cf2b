import { useQuery } from '@tanstack/react-query'
import { useId } from 'react'
import { useSearchParams } from 'wouter'
import type { ReviewView } from '../../../../src/deck/wire-jobs.ts'
import { reviewsQuery, typesQuery } from '../../api/queries.ts'
import { Chip } from '../../parts/chip.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { reviewPath, RouteLink } from '../../parts/route-link.tsx'
import { Time } from '../../text/clock.tsx'
import { plural } from '../../text/duration.ts'
import { Text } from '../../text/text.tsx'
import { ownerWords, whatIsInDoubt } from './review-words.ts'

export function ReviewListPage() {
  const [search] = useSearchParams()
  const type = search.get('type') ?? ''
  const query = useQuery(reviewsQuery(type))
  return (
    <Page title="Review" aside={<TypeFilter type={type} />}>
      <p className="lead">
        Jobs whose side effect may have happened, and nobody can tell by looking at them. Their keys are held until a
        person decides; nothing is repeated meanwhile.
      </p>
      <Loaded query={query}>
        {({ reviews }) =>
          reviews.length === 0 ? (
            <Empty title="Nothing waits for a person.">
              {type === '' ? 'Every outcome is known.' : 'Not of this type.'}
            </Empty>
          ) : (
            <ul className="review-list">
              {reviews.map((review) => (
                <ReviewRow key={review.id} review={review} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Page>
  )
}

function TypeFilter({ type }: { readonly type: string }) {
  const [, setSearch] = useSearchParams()
  const { data } = useQuery(typesQuery)
  const id = useId()
  const types = data?.types ?? []
  return (
    <div className="filter">
      <label htmlFor={id} className="off-screen">
        Type
      </label>
      <select
        id={id}
        value={type}
        data-filter
        onChange={({ target }) => setSearch(target.value === '' ? {} : { type: target.value }, { replace: true })}
      >
        <option value="">all types</option>
        {type !== '' && !types.includes(type) ? <option>{type}</option> : null}
        {types.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </div>
  )
}

function ReviewRow({ review }: { readonly review: ReviewView }) {
  const { id, type, key, reason, message, intentAtMs, attempts, crashes, ownerGone } = review
  return (
    <li className="panel review-row" data-row>
      <div>
        <h2>
          <RouteLink to={reviewPath(id)} data-row-link>
            <Text>{type}</Text>
          </RouteLink>
          <code>
            <Text>{key}</Text>
          </code>
        </h2>
        <p className="says">
          <Text>{message}</Text>
        </p>
      </div>
      <div className="review-when">
        <span>
          <Chip tone="doubt">{reason}</Chip> <Text>{whatIsInDoubt(review)}</Text>
          {intentAtMs === null ? null : (
            <>
              , since <Time ms={intentAtMs} />
            </>
          )}
        </span>
        <span className="quiet">
          {plural(attempts, 'attempt')}, {plural(crashes, 'crash', 'crashes')}
          {ownerGone === null ? null : ', '}
          {ownerGone === null ? null : (
            <span className={ownerGone ? undefined : 'owner-warning'}>{ownerWords(ownerGone)}</span>
          )}
        </span>
      </div>
      <RouteLink to={reviewPath(id)} className="button button-doubt" tabIndex={-1}>
        Decide
        <Icon name="arrow" />
      </RouteLink>
    </li>
  )
}
