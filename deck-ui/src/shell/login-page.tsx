import { useMutation } from '@tanstack/react-query'
import { type SubmitEvent, useEffect, useState } from 'react'
import { logIn } from '../api/login.ts'
import { problemOf } from '../api/request.ts'
import { Text } from '../text/text.tsx'
import { Brand } from './brand.tsx'

export function LoginPage({ onIn }: { readonly onIn: () => void }) {
  const [token, setToken] = useState('')
  const entry = useMutation({ mutationFn: logIn, onSuccess: onIn })
  useEffect(() => {
    document.title = 'Sign in · ChokaQ Deck'
  }, [])

  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    if (token.trim() !== '') entry.mutate(token.trim())
  }

  return (
    <main className="gate">
      <form className="panel login" onSubmit={submit}>
        <Brand />
        <h1>Sign in</h1>
        <p className="quiet">
          This Deck asks for a token. Whoever runs it has one: it was printed by <code>chokaq deck</code>, or is set
          where the Deck is mounted.
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
    </main>
  )
}
