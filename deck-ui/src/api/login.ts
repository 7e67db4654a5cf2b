/**
 * Signing in. The server answers a token with a cookie that no script can read. `chokaq deck` may print an address with
 * `#token=…`: a fragment is sent to nobody, so it stands in no log.
 */
import { postJson } from './request.ts'

export function logIn(token: string): Promise<unknown> {
  return postJson('api/login', { token })
}

/** Signs in with the token of the address, and takes it out of there. A wrong one leads to the login page. */
export async function logInFromAddress(): Promise<void> {
  const token = new URLSearchParams(location.hash.slice(1)).get('token')
  if (token === null) return
  history.replaceState(history.state, '', location.pathname + location.search)
  await logIn(token).catch(() => undefined)
}
