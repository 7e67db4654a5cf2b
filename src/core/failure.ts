/**
 * What is kept of a failure. A handler may throw anything, so nothing here trusts the value: recording a failure never
 * fails because of its content.
 */
import { cleanText } from './clean-text.ts'
import { tagOf } from './describe-value.ts'

export { cleanText } from './clean-text.ts'

export interface StoredCause {
  readonly name: string
  readonly message: string
  readonly code?: string
}

export interface StoredFailure {
  readonly name: string
  /** At most 2,000 characters. */
  readonly message: string
  readonly code?: string
  /** At most 8,000 characters. */
  readonly stack?: string
  /** The chain of causes and the errors of an AggregateError, nearest first, at most 10. */
  readonly causes?: readonly StoredCause[]
  /** What kind of value was thrown, where it was no error, such as 'string' or 'null'. */
  readonly thrown?: string
}

const maxMessageChars = 2_000
const maxStackChars = 8_000
const maxNameChars = 200
const maxCauseMessageChars = 500
const maxCauses = 10
const previewDepth = 3
const maxPreviewMembers = 20
const maxPreviewChars = 500
const maxLineChars = 500
const maxKindChars = 100
const maxHistoryEntries = 10
const maxHistoryBytes = 32_000

/** What is kept of a thrown value. Never throws and never runs for long, whatever the value is. */
export function describeFailure(thrown: unknown): StoredFailure {
  const causes = causesOf(thrown)
  const more = causes.length > 0 ? { causes } : {}
  if (!isError(thrown)) {
    return {
      name: 'NonError',
      message: textOf(thrown, maxMessageChars),
      ...codeOf(thrown),
      ...more,
      thrown: kindOfThrown(thrown),
    }
  }
  const stack = read(thrown, 'stack')
  return {
    ...summary(thrown, maxMessageChars),
    ...(typeof stack === 'string' && stack !== '' ? { stack: cleanText(stack, maxStackChars) } : {}),
    ...more,
  }
}

/** Errors of every realm, and what has the shape of one: some libraries throw plain objects with name and message. */
function isError(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  if (isErrorInstance(value) || tagOf(value) === 'Error') return true
  return typeof read(value, 'message') === 'string' && typeof read(value, 'name') === 'string'
}

function isErrorInstance(value: object): boolean {
  try {
    return value instanceof Error
  } catch {
    return false // a proxy whose traps throw
  }
}

function summary(error: object, messageChars: number): StoredCause {
  const name = read(error, 'name')
  const message = read(error, 'message')
  return {
    name: typeof name === 'string' && name !== '' ? cleanText(name, maxNameChars) : 'Error',
    message: message === undefined ? '' : textOf(message, messageChars),
    ...codeOf(error),
  }
}

function codeOf(value: unknown): { readonly code?: string } {
  const code = typeof value === 'object' && value !== null ? read(value, 'code') : undefined
  const isCode = (typeof code === 'string' && code !== '') || typeof code === 'number'
  return isCode ? { code: cleanText(String(code), maxNameChars) } : {}
}

function kindOfThrown(thrown: unknown): string {
  if (typeof thrown !== 'object') return typeof thrown
  if (thrown === null) return 'null'
  return tagOf(thrown) === 'Array' ? 'array' : 'object'
}

/** A readable text of any value: texts as they are, objects as a preview. */
function textOf(value: unknown, maxChars: number): string {
  return cleanText(typeof value === 'string' ? value : preview(value, previewDepth), maxChars)
}

/** Like JSON, but bounded in depth and breadth and without calling a method of the value: it is not to be trusted. */
function preview(value: unknown, depth: number): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, maxPreviewChars))
  if (typeof value === 'function') return 'a function'
  if (typeof value !== 'object' || value === null) return String(value)
  if (depth === 0) return '…'
  try {
    const isArray = Array.isArray(value)
    const keys = Object.keys(value)
    const parts = keys.slice(0, maxPreviewMembers).map((key) => {
      const member = preview(read(value, key), depth - 1)
      return isArray ? member : `${JSON.stringify(key.slice(0, maxPreviewChars))}:${member}`
    })
    if (keys.length > parts.length) parts.push('…')
    return isArray ? `[${parts.join(',')}]` : `{${parts.join(',')}}`
  } catch {
    return 'an object that cannot be read'
  }
}

/** Nearest first; a value met before is not followed again, so a circle of causes ends. */
function causesOf(thrown: unknown): readonly StoredCause[] {
  const seen = new Set<unknown>([thrown])
  const queue = directCauses(thrown)
  const causes: StoredCause[] = []
  for (let next = 0; next < queue.length && causes.length < maxCauses; next++) {
    const cause = queue[next]
    if (seen.has(cause)) continue
    if (typeof cause === 'object') seen.add(cause)
    causes.push(
      isError(cause)
        ? summary(cause, maxCauseMessageChars)
        : { name: 'NonError', message: textOf(cause, maxCauseMessageChars), ...codeOf(cause) },
    )
    queue.push(...directCauses(cause))
  }
  return causes
}

function directCauses(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return []
  const cause = read(value, 'cause')
  return [...(cause === undefined || cause === null ? [] : [cause]), ...firstErrors(read(value, 'errors'))]
}

function firstErrors(errors: unknown): readonly unknown[] {
  try {
    // Only what says it is an error counts: validation libraries keep lists of plain issues under the same name.
    return Array.isArray(errors) ? errors.slice(0, maxCauses).filter(isError) : []
  } catch {
    return []
  }
}

/** A member of an object; what cannot be read is said so instead of thrown. */
function read(value: object, key: string): unknown {
  try {
    return Reflect.get(value, key) as unknown
  } catch {
    return key === 'message' ? 'the message cannot be read' : undefined
  }
}

/** One line for lists and logs: name, code, message and the nearest cause; at most 500 characters. */
export function failureText(failure: StoredFailure): string {
  const cause = failure.causes?.[0]
  const text = causeText(failure) + (cause === undefined ? '' : ` (cause: ${causeText(cause)})`)
  return cleanText(text.replace(/\s+/g, ' ').trim(), maxLineChars)
}

function causeText({ name, message, code }: StoredCause): string {
  const head = code === undefined ? name : `${name} [${code}]`
  return message === '' ? head : `${head}: ${message}`
}

export function serializeFailure(failure: StoredFailure): string {
  return JSON.stringify(failure)
}

/** What `serializeFailure` wrote. A text of another origin is not lost: it becomes the message. Never throws. */
export function parseFailure(text: string): StoredFailure {
  return failureFrom(parsed(text)) ?? { name: 'UnreadableFailure', message: cleanText(text, maxMessageChars) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** The failure in a parsed value, with every text within its limit; undefined where there is none. */
function failureFrom(value: unknown): StoredFailure | undefined {
  const head = causeFrom(value, maxMessageChars)
  if (head === undefined) return undefined
  const { stack, causes, thrown } = value as Readonly<Record<string, unknown>>
  const known = Array.isArray(causes)
    ? causes.slice(0, maxCauses).map((each) => causeFrom(each, maxCauseMessageChars))
    : []
  const whole = known.filter((cause) => cause !== undefined)
  return {
    ...head,
    ...(typeof stack === 'string' ? { stack: cleanText(stack, maxStackChars) } : {}),
    ...(whole.length > 0 ? { causes: whole } : {}),
    ...(typeof thrown === 'string' ? { thrown: cleanText(thrown, maxNameChars) } : {}),
  }
}

function causeFrom(value: unknown, messageChars: number): StoredCause | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { name, message, code } = value as Readonly<Record<string, unknown>>
  if (typeof name !== 'string' || typeof message !== 'string') return undefined
  return {
    name: cleanText(name, maxNameChars),
    message: cleanText(message, messageChars),
    ...(typeof code === 'string' ? { code: cleanText(code, maxNameChars) } : {}),
  }
}

/** One failed attempt in the history of a job, which is kept on its row. */
export interface HistoryEntry {
  readonly attempt: number
  /** When the attempt ended, milliseconds since 1970. */
  readonly atMs: number
  /** How it ended, such as 'failed' or 'timeout'. */
  readonly kind: string
  readonly failure: StoredFailure
}

/**
 * The history with one entry more: the last 10, at most 32 kB of UTF-8. What does not fit goes in this order: stacks from
 * the oldest on, causes from the oldest on, then whole entries. A history that cannot be read is replaced, not an error.
 */
export function appendHistory(history: string | null, entry: HistoryEntry): string {
  const added = entryFrom(entry)
  const entries = [...parseHistory(history), ...(added === undefined ? [] : [added])].slice(-maxHistoryEntries)
  for (const shrink of [withoutStack, withoutCauses]) {
    for (let i = 0; i < entries.length && isTooLong(entries); i++) {
      entries.splice(i, 1, ...entries.slice(i, i + 1).map(shrink))
    }
  }
  while (entries.length > 1 && isTooLong(entries)) entries.shift()
  return JSON.stringify(entries)
}

/** The entries, oldest first; what cannot be read is left out. Never throws. */
export function parseHistory(text: string | null): readonly HistoryEntry[] {
  if (text === null) return []
  try {
    const value = JSON.parse(text) as unknown
    return Array.isArray(value) ? value.map(entryFrom).filter((entry) => entry !== undefined) : []
  } catch {
    return []
  }
}

function entryFrom(value: unknown): HistoryEntry | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { attempt, atMs, kind, failure } = value as Readonly<Record<string, unknown>>
  const stored = failureFrom(failure)
  if (typeof attempt !== 'number' || typeof atMs !== 'number' || typeof kind !== 'string') return undefined
  return stored === undefined ? undefined : { attempt, atMs, kind: cleanText(kind, maxKindChars), failure: stored }
}

function withoutStack(entry: HistoryEntry): HistoryEntry {
  const { stack: _stack, ...failure } = entry.failure
  return { ...entry, failure }
}

function withoutCauses(entry: HistoryEntry): HistoryEntry {
  const { causes: _causes, ...failure } = entry.failure
  return { ...entry, failure }
}

function isTooLong(entries: readonly HistoryEntry[]): boolean {
  return utf8Length(JSON.stringify(entries)) > maxHistoryBytes
}

function utf8Length(text: string): number {
  let bytes = 0
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4
  }
  return bytes
}
