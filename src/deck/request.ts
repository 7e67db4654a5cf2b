/** What comes in, read by an allow-list: own members of the right kind, everything else refused or left out. */
import {
  type ArchiveOutcome,
  archiveOutcomes,
  deadReasons,
  type HotState,
  hotStates,
  type Pillar,
} from '../core/job.ts'
import type { JobFilter } from '../core/inspector.ts'
import { DeckRefusal, invalid } from './problem.ts'
import { ranges, type Range } from './wire.ts'
import type { JobFilterView } from './wire-jobs.ts'

const maxTextLength = 500
const maxTextLengthOfNote = 2_000

/** The body of a POST, an object. */
export async function readJson(request: Request, maxBytes: number): Promise<Readonly<Record<string, unknown>>> {
  const mediaType = (request.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase()
  if (mediaType !== 'application/json') {
    throw new DeckRefusal(415, 'unsupported-media-type', 'Send application/json.')
  }
  const value = parsed(await readText(request, maxBytes))
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>
  }
  throw new DeckRefusal(400, 'body-not-json', 'The body must be a JSON object.')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new DeckRefusal(400, 'body-not-json', 'The body is not JSON.')
  }
}

async function readText(request: Request, maxBytes: number): Promise<string> {
  const tooLarge = (): DeckRefusal => new DeckRefusal(413, 'body-too-large', `The body may have ${maxBytes} bytes.`)
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge()
  if (request.bodyUsed) {
    throw new DeckRefusal(500, 'internal', 'A body parser read the request first: mount the Deck before it.')
  }
  if (request.body === null) return ''
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const reader = (request.body as ReadableStream<Uint8Array>).getReader()
  let text = ''
  let byteCount = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return text + decoder.decode()
      byteCount += value.byteLength
      if (byteCount > maxBytes) throw tooLarge()
      text += decoder.decode(value, { stream: true })
    }
  } catch (error) {
    reader.cancel().catch(() => undefined)
    if (error instanceof DeckRefusal) throw error
    throw new DeckRefusal(400, 'body-not-json', 'The body broke off, or is not UTF-8.')
  }
}

export type Body = Readonly<Record<string, unknown>>

export function optionalText(body: Body, name: string, maxLength = maxTextLength): string | undefined {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string' && isStorable(value, maxLength)) return value
  throw invalid(`${name} must be a text of at most ${maxLength} characters.`)
}

/** NUL and halves of surrogate pairs are in no stored text, and PostgreSQL refuses to be asked for them. */
function isStorable(text: string, maxLength: number): boolean {
  return text.length <= maxLength && text.isWellFormed() && !text.includes('\0')
}

/** Why, for the audit log; one line, because logs are read line by line. */
export function noteOf(body: Body): string {
  return (optionalText(body, 'note', maxTextLengthOfNote) ?? '').replace(/\s+/g, ' ').trim()
}

export function wholeOf(body: Body, name: string, min: number, max: number): number {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  throw invalid(`${name} must be a whole number from ${min} to ${max}.`)
}

export function pillarOf(text: string | undefined): Pillar {
  if (text === 'hot' || text === 'archive' || text === 'dlq') return text
  throw invalid('pillar must be hot, archive or dlq.')
}

export function rangeOf(text: string | null): Range {
  const range = ranges.find((each) => each === (text ?? '1h'))
  if (range === undefined) throw invalid(`range must be one of ${ranges.join(', ')}.`)
  return range
}

/** A number in an address, within its limits: one that is out of them is cut to them, what is no number is refused. */
export function clampedCount(text: string | null, standard: number, max: number): number {
  if (text === null || text === '') return standard
  if (!/^\d{1,15}$/.test(text)) throw invalid('A limit must be a whole number.')
  return Math.min(Math.max(Number(text), 1), max)
}

export const filterNames = [
  'type',
  'queue',
  'key',
  'tag',
  'state',
  'reason',
  'review',
  'from',
  'before',
] as const satisfies readonly (keyof JobFilterView)[]

/** The filter of an address. Unknown names are other parameters, such as `limit`. */
export function filterOfQuery(query: URLSearchParams): JobFilterView {
  const found = filterNames.flatMap((name) => {
    const value = query.get(name)
    return value === null || value === '' ? [] : [[name, checkedText(name, value)] as const]
  })
  return Object.fromEntries(found)
}

export function filterOfBody(value: unknown): JobFilterView {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid('filter must be an object.')
  const unknown = Object.keys(value).find((name) => !filterNames.some((each) => each === name))
  // One that is left out by mistake would widen the act.
  if (unknown !== undefined) throw invalid('filter has a name that is no filter.')
  const found = filterNames.flatMap((name) => {
    const text = optionalText(value as Body, name)
    return text === undefined || text === '' ? [] : [[name, checkedText(name, text)] as const]
  })
  return Object.fromEntries(found)
}

function checkedText(name: string, value: string): string {
  if (isStorable(value, maxTextLength)) return value
  throw invalid(`${name} must be a text of at most ${maxTextLength} characters.`)
}

/** What the storage understands. */
export function jobFilter(pillar: Pillar, view: JobFilterView): JobFilter {
  const { type, queue, key, tag, state, reason, review, from, before } = view
  return {
    ...(type === undefined ? {} : { type }),
    ...(queue === undefined ? {} : { queue }),
    ...(key === undefined ? {} : /^[0-9a-f]{64}$/.test(key) ? { keyHash: key } : { keyPrefix: key }),
    ...(tag === undefined ? {} : { tag }),
    ...(state === undefined ? {} : { state: stateOf(pillar, state) }),
    ...(reason === undefined ? {} : { reason: reasonOf(pillar, reason) }),
    ...(review === undefined ? {} : reviewOf(pillar, review)),
    ...(from === undefined ? {} : { fromMs: timeOf('from', from) }),
    ...(before === undefined ? {} : { beforeMs: timeOf('before', before) }),
  }
}

function stateOf(pillar: Pillar, text: string): HotState | ArchiveOutcome {
  const known: readonly (HotState | ArchiveOutcome)[] =
    pillar === 'hot' ? hotStates : pillar === 'archive' ? archiveOutcomes : []
  const state = known.find((each) => each === text)
  if (state === undefined) throw invalid(`state must be one of: ${known.join(', ') || 'none in the DLQ'}.`)
  return state
}

function reasonOf(pillar: Pillar, text: string): (typeof deadReasons)[number] {
  const reason = deadReasons.find((each) => each === text)
  if (pillar !== 'dlq') throw invalid('reason filters dead jobs only.')
  if (reason === undefined) throw invalid(`reason must be one of: ${deadReasons.join(', ')}.`)
  return reason
}

function reviewOf(pillar: Pillar, text: string): { readonly inReview?: true } {
  if (text === '0' || text === 'false') return {}
  if (pillar === 'dlq' && (text === '1' || text === 'true')) return { inReview: true }
  throw invalid('review must be 1, and filters dead jobs only.')
}

function timeOf(name: string, text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw invalid(`${name} must be milliseconds since 1970.`)
}
