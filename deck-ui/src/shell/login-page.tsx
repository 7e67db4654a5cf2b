import { useMutation } from '@tanstack/react-query'
import { type SubmitEvent, useEffect, useState } from 'react'
import { logIn } from '../api/login.ts'
import { ProblemError, problemOf } from '../api/request.ts'
import { Text } from '../text/text.tsx'
import { Brand } from './brand.tsx'

interface LoginPageProps {
  readonly error: unknown
  readonly onIn: () => void
}

export function LoginPage({ error, onIn }: LoginPageProps) {
  useEffect(() => {
    document.title = 'Sign in · ChokaQ Deck'
  }, [])
  const asksForToken = error instanceof ProblemError && error.asksForToken
  return (
    <main className="gate">
      <div className="panel login">
        <Brand />
        {asksForToken ? <TokenForm onIn={onIn} /> : <ElsewherePanel error={error} onIn={onIn} />}
      </div>
    </main>
  )
}

/** The application that mounts the Deck decides who gets in; only it can sign people in. */
function ElsewherePanel({ error, onIn }: LoginPageProps) {
  return (
    <>
      <h1>Not signed in</h1>
      <p>
        <Text>{problemOf(error).title}</Text>
      </p>
      <p className="quiet">Sign in where this Deck is mounted, then come back.</p>
      <button type="button" className="button button-main" onClick={onIn}>
        Look again
      </button>
    </>
  )
}

function TokenForm({ onIn }: Pick<LoginPageProps, 'onIn'>) {
  const [token, setToken] = useState('')
  const entry = useMutation({ mutationFn: logIn, onSuccess: onIn })

  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    if (token.trim() !== '') entry.mutate(token.trim())
  }

  return (
    <form className="login-form" onSubmit={submit}>
      <h1>Sign in</h1>
      <p className="quiet">
        This Deck asks for a token. Whoever runs it has one: it was printed by <code>chokaq deck</code>, or is set where
        the Deck is mounted.
      </p>
      <div className="field">
        <label htmlFor="token">Token</label>
        <input
          id="token"
          type="password"
          autoComplete="current-password"
          autoFocus
          value={token}
          onChange={({ target }) => setToken(target.value)}
        />
      </div>
      {entry.error === null ? null : (
        <p className="field-error" role="alert">
          <Text>{problemOf(entry.error).title}</Text>
        </p>
      )}
      <button type="submit" className="button button-main" aria-disabled={entry.isPending}>
        {entry.isPending ? 'Signing in…' : 'Open the Deck'}
      </button>
    </form>
  )
}
