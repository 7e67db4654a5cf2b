/**
 * Signing in. The server answers a token with a cookie that no script can read. `chokaq deck` may print an address with
 * `#token=…`: a fragment is sent to nobody, so it stands in no log.
 */
import { postJson } from './request.ts'

const slot = 'chokaq-deck-signed-in'

export async function logIn(token: string): Promise<void> {
  await postJson('api/login', { token })
  localStorage.setItem(slot, 'yes')
}

export async function logOut(): Promise<void> {
  await postJson('api/logout', {})
  localStorage.removeItem(slot)
}

/** Whether there is a sign-in of ours to take back. */
export function isSignedIn(): boolean {
  return localStorage.getItem(slot) !== null
}

/** Signs in with the token of the address, and takes it out of there. A wrong one leads to the login page. */
export async function logInFromAddress(): Promise<void> {
  const token = new URLSearchParams(location.hash.slice(1)).get('token')
  if (token === null) return
  history.replaceState(history.state, '', location.pathname + location.search)
  await logIn(token).catch(() => undefined)
}
