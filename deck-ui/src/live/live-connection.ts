/**
 * Keeps one stream of events open while the page lives.
 *
 *   connecting -> live -> stale -> (waits, tries again) -> live …
 *
 * It is `live` from the first event. It is `stale` as soon as the stream ends, or says that the storage does not answer,
 * or stays silent for longer than a server that is alive would. The page keeps what it has and says how old it is.
 */
import type { LiveEvent, LiveState } from '../../../src/deck/wire.ts'
import { problemOf, send } from '../api/request.ts'
import { createStreamReader } from './event-stream.ts'

export interface LiveView {
  readonly link: 'connecting' | 'live' | 'stale'
  readonly state: LiveState | null
  /** When the last state came, by this machine's clock. */
  readonly heardAtMs: number | null
  /** Why it is stale. */
  readonly trouble: string | null
}

const silenceMs = 45_000
const firstPauseMs = 1_000
const longestPauseMs = 15_000

export const startView: LiveView = { link: 'connecting', state: null, heardAtMs: null, trouble: null }

/** Calls `show` with each new view; returns how to stop. */
export function connectLive(show: (change: (view: LiveView) => LiveView) => void): () => void {
  const closed = new AbortController()
  void keepOpen(show, closed.signal)
  return () => closed.abort()
}

type Show = Parameters<typeof connectLive>[0]

async function keepOpen(show: Show, closed: AbortSignal): Promise<void> {
  let pauseMs = firstPauseMs
  while (!closed.aborted) {
    let heard = false
    const trouble = await readStream(closed, (event) => {
      heard = true
      show((view) => viewAfter(view, event))
    })
    if (closed.aborted) return
    if (heard) pauseMs = firstPauseMs
    show((view) => ({ ...view, link: 'stale', trouble }))
    await pause(pauseMs, closed)
    pauseMs = Math.min(pauseMs * 2, longestPauseMs)
  }
}

export function viewAfter(view: LiveView, event: LiveEvent): LiveView {
  if (event.kind === 'trouble') return { ...view, link: 'stale', trouble: event.title }
  return { link: 'live', state: event.state, heardAtMs: Date.now(), trouble: null }
}

/** Reads one stream to its end; answers why it ended. */
async function readStream(closed: AbortSignal, hear: (event: LiveEvent) => void): Promise<string> {
  const silence = new AbortController()
  let timer = setTimeout(() => silence.abort(), silenceMs)
  try {
    const signal = AbortSignal.any([closed, silence.signal])
    const response = await send('api/events', { headers: { accept: 'text/event-stream' }, signal })
    if (response.body === null) return 'The stream of events is empty.'
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    const events = createStreamReader()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return 'The server closed the stream of events.'
      clearTimeout(timer)
      timer = setTimeout(() => silence.abort(), silenceMs)
      for (const data of events.push(value)) hear(JSON.parse(data) as LiveEvent)
    }
  } catch (error) {
    if (silence.signal.aborted) return 'The stream of events went silent.'
    return problemOf(error).status === 0 ? 'The server of the Deck does not answer.' : problemOf(error).title
  } finally {
    clearTimeout(timer)
  }
}

function pause(ms: number, closed: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    const stop = (): void => {
      clearTimeout(timer)
      resolve()
    }
    closed.addEventListener('abort', stop, { once: true })
  })
}
