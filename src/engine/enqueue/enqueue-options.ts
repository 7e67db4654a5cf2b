/** What a producer may override, checked by one rule for every way in. */
import type { Duration } from '../../core/duration.ts'
import { durationMs } from '../../core/duration.ts'
import { ChokaQError } from '../../core/errors.ts'
import { unknownKeyProblem } from '../../core/did-you-mean.ts'
import { whole } from '../../core/config.ts'
import type { Due } from '../../core/job.ts'

export interface EnqueueOptions {
  /** A UUID of your own: repeating the call with it is safe. Defaults to a new one. */
  id?: string
  /** Wait this long before the first start; 0 to `maxDelay` (30 days). */
  delay?: Duration
  /** Or start at this time; a past time means now. */
  runAt?: Date
  /** -1000 to 1000; a higher number runs first. Defaults to 0. */
  priority?: number
  /** Defaults to the contract's queue. */
  queue?: string
  /** At most 10 of at most 100 characters. */
  tags?: readonly string[]
  /** Scopes the key: the same key of two tenants is two keys. */
  tenant?: string
}

export interface ResolvedEnqueueOptions {
  readonly id: string | undefined
  readonly due: Due
  readonly priority: number
  readonly queue: string | undefined
  readonly tags: readonly string[]
  readonly tenant: string | undefined
}

// A `tx` or an `item` that gets this far would be ignored: the calls that know them have taken them out.
const known = ['id', 'delay', 'runAt', 'priority', 'queue', 'tags', 'tenant']
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const maxTagCount = 10
const maxTagLength = 100
export const maxNameLength = 128

export function resolveEnqueueOptions(
  options: EnqueueOptions,
  maxDelayMs: number,
  nowMs: number,
): ResolvedEnqueueOptions {
  const problem = unknownKeyProblem(options, known, 'enqueue')
  if (problem !== undefined) throw new ChokaQError('CHOKAQ_CONFIG_INVALID', { problem })
  return {
    id: readId(options.id),
    due: readDue(options, maxDelayMs, nowMs),
    priority: whole(options.priority, 'priority', 0, -1000, 1000),
    queue: options.queue === undefined ? undefined : readName(options.queue, 'queue'),
    tags: readTags(options.tags),
    tenant: options.tenant === undefined ? undefined : readName(options.tenant, 'tenant'),
  }
}

/** A queue or tenant name: any text of 1 to 128 characters, quotes and emoji included, without control characters. */
export function readName(value: unknown, option: string): string {
  // eslint-disable-next-line no-control-regex -- control characters are what is refused
  const control = /[\u0000-\u001f\u007f]/
  if (
    typeof value === 'string' &&
    value.length > 0 &&
    value.length <= maxNameLength &&
    value.isWellFormed() &&
    !control.test(value)
  ) {
    return value
  }
  return refuse(option, value, `a text of 1 to ${maxNameLength} characters without control characters`)
}

function readId(id: unknown): string | undefined {
  if (id === undefined) return undefined
  if (typeof id === 'string' && uuid.test(id)) return id.toLowerCase()
  return refuse('id', id, 'a UUID')
}

function readDue(options: EnqueueOptions, maxDelayMs: number, nowMs: number): Due {
  if (options.delay !== undefined && options.runAt !== undefined) {
    return refuse('runAt', options.runAt, 'either delay or runAt, not both')
  }
  if (options.runAt !== undefined) {
    const atMs = options.runAt instanceof Date ? options.runAt.getTime() : Number.NaN
    if (!Number.isFinite(atMs)) return refuse('runAt', options.runAt, 'a valid Date')
    if (atMs - nowMs > maxDelayMs)
      return refuse('runAt', options.runAt.toISOString(), `at most ${maxDelayMs} ms from now (maxDelay)`)
    return { kind: 'at', atMs }
  }
  if (options.delay === undefined) return { kind: 'now' }
  const delayMs = durationMs(options.delay, 'delay', { minMs: 0, maxMs: maxDelayMs })
  return delayMs === 0 ? { kind: 'now' } : { kind: 'in', delayMs }
}

function readTags(tags: unknown): readonly string[] {
  if (tags === undefined) return []
  if (!Array.isArray(tags) || tags.length > maxTagCount) return refuse('tags', tags, `at most ${maxTagCount} texts`)
  for (const tag of tags as readonly unknown[]) {
    if (typeof tag !== 'string' || tag.length === 0 || tag.length > maxTagLength || !tag.isWellFormed()) {
      return refuse('tags', tag, `texts of 1 to ${maxTagLength} characters`)
    }
  }
  return [...(tags as readonly string[])]
}

function refuse(option: string, value: unknown, expected: string): never {
  const text = typeof value === 'string' ? JSON.stringify(value.slice(0, 60)) : String(value).slice(0, 60)
  throw new ChokaQError('CHOKAQ_OPTION_INVALID', { option, value: text, expected })
}
