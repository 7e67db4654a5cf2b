import type { ErrorView } from '../../../../src/deck/wire-jobs.ts'
import { Time } from '../../text/clock.tsx'
import { CopyButton } from '../../text/copyable.tsx'
import { Text } from '../../text/text.tsx'

export function ErrorList({ errors }: { readonly errors: readonly ErrorView[] }) {
  return (
    <div className="errors">
      {errors.map((error, at) => (
        <ErrorCard key={at} error={error} open={at === 0} />
      ))}
    </div>
  )
}

export function ErrorCard({ error, open = false }: { readonly error: ErrorView; readonly open?: boolean }) {
  const { name, message, code, stack, atMs, attempt } = error
  return (
    <article className="panel error-card">
      <p className="error-head">
        <b>
          <Text>{name}</Text>
        </b>
        {code === null ? null : (
          <code>
            <Text>{code}</Text>
          </code>
        )}
        <span className="quiet">
          {attempt === null ? '' : `attempt ${attempt} `}
          {atMs === null ? null : <Time ms={atMs} />}
        </span>
      </p>
      <p className="error-message">
        <Text block>{message}</Text>
      </p>
      {stack === null ? null : (
        <details open={open}>
          <summary>Stack</summary>
          <div className="code-block">
            <CopyButton value={stack} what="stack" />
            <pre tabIndex={0} role="region" aria-label="stack">
              <Text block>{stack}</Text>
            </pre>
          </div>
        </details>
      )}
    </article>
  )
}
