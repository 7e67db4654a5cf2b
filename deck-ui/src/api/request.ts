/** Requests to the Deck's server. Addresses are relative to the page's `<base href>`. */
import type { ProblemView } from '../../../src/deck/wire.ts'

/** The server's answer to a request that failed, or what the browser knows where there was no answer. */
export class ProblemError extends Error {
  readonly problem: ProblemView
  /** A token would let the person in; without it, the host of the Deck has its own sign-in. */
  readonly asksForToken: boolean

  constructor(problem: ProblemView, asksForToken = false) {
    super(problem.title)
    this.name = 'ProblemError'
    this.problem = problem
    this.asksForToken = asksForToken
  }
}

export function problemOf(error: unknown): ProblemView {
  if (error instanceof ProblemError) return error.problem
  const title = error instanceof Error ? error.message : String(error)
  return { status: 0, code: 'page-error', title: `This page failed: ${title}` }
}

export type Query = Readonly<Record<string, string | number | undefined>>

export function address(path: string, query: Query = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') search.set(name, String(value))
  }
  const text = search.toString()
  return text === '' ? path : `${path}?${text}`
}

export async function getJson<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return read<T>(await send(address(path, query), { headers: { accept: 'application/json' }, signal: signal ?? null }))
}

export async function postJson<T>(path: string, body: unknown): Promise<T> {
  const headers = { accept: 'application/json', 'content-type': 'application/json' }
  return read<T>(await send(path, { method: 'POST', headers, body: JSON.stringify(body) }))
}

/** A response that is no error; its body is not read yet. */
export async function send(path: string, init: RequestInit): Promise<Response> {
  const response = await reach(path, init)
  if (!response.ok) throw new ProblemError(await problemIn(response), response.headers.has('www-authenticate'))
  return response
}

async function reach(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, { ...init, credentials: 'same-origin' })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    const title = 'The server of the Deck does not answer. Check that it runs and that you are on its network.'
    throw new ProblemError({ status: 0, code: 'unreachable', title })
  }
}

async function read<T>(response: Response): Promise<T> {
  const text = await response.text()
  return (text === '' ? null : JSON.parse(text)) as T
}

async function problemIn(response: Response): Promise<ProblemView> {
  const fallback = {
    status: response.status,
    code: 'no-problem-text',
    title: `The server answered ${response.status}.`,
  }
  try {
    const body = (await response.json()) as Partial<ProblemView>
    if (typeof body.title !== 'string' || typeof body.code !== 'string') return fallback
    return { status: response.status, code: body.code, title: body.title }
  } catch {
    return fallback
  }
}
