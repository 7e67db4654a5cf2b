/**
 * What a handler throws to steer the engine. `instanceof` looks at a brand, so two copies of the package (one bundled,
 * one installed) recognise each other's errors; a user's subclass is recognised by its prototype as usual.
 */
import { shortValue, tagOf } from './describe-value.ts'
import { durationMs, formatMs, type Duration } from './duration.ts'
import { ChokaQError } from './errors.ts'

export interface ControlFlowOptions {
  readonly cause?: unknown
}

const fatalBrand = Symbol.for('chokaq.fatal-error')
const notExecutedBrand = Symbol.for('chokaq.not-executed')
const retryAfterBrand = Symbol.for('chokaq.retry-after')
const effectDeclinedBrand = Symbol.for('chokaq.effect-declined')
const reviewNeededBrand = Symbol.for('chokaq.review-needed')

function mark(error: object, brand: symbol): void {
  Object.defineProperty(error, brand, { value: true })
}

function isMarked(value: unknown, brand: symbol): boolean {
  if (typeof value !== 'object' || value === null) return false
  try {
    return Reflect.get(value, brand) === true
  } catch {
    return false // a proxy whose traps throw: whatever it is, it is none of ours
  }
}

/** `asked` is the right side of `instanceof`: the class itself, or a subclass that inherited its `hasInstance`. */
function isInstance(asked: unknown, own: unknown, value: unknown, brand: symbol): boolean {
  if (asked === own) return isMarked(value, brand)
  return isMarked(value, brand) && Function.prototype[Symbol.hasInstance].call(asked, value)
}

/** Retrying cannot help: the job goes to the DLQ at once, whatever its retry budget. */
export class FatalError extends Error {
  override readonly name: string = 'FatalError'

  constructor(message?: string, options?: ControlFlowOptions) {
    super(message, options)
    mark(this, fatalBrand)
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isInstance(this, FatalError, value, fatalBrand)
  }
}

/** The handler proves that the action did not happen, so it may run again even under `whenInterrupted: 'review'`. */
export class NotExecuted extends Error {
  override readonly name: string = 'NotExecuted'

  constructor(message?: string, options?: ControlFlowOptions) {
    super(message, options)
    mark(this, notExecutedBrand)
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isInstance(this, NotExecuted, value, notExecutedBrand)
  }
}

/**
 * Nothing was done; run again after a wait or at a time. Costs neither a retry nor a crash, within the retry lifetime.
 * Exactly one of `delayMs` and `atMs` is set: a time is kept as a time, because the moment of throwing is not the
 * moment of settling. A time in the past means as soon as possible.
 *
 * The constructor throws CHOKAQ_DURATION_INVALID for a wait that is no duration and no valid Date.
 */
export class RetryAfter extends Error {
  override readonly name: string = 'RetryAfter'
  /** Milliseconds to wait, counted from the moment the attempt settles. */
  readonly delayMs: number | undefined
  /** When to run, milliseconds since 1970. */
  readonly atMs: number | undefined
  readonly reason: string | undefined

  constructor(wait: Duration | Date, reason?: string, options?: ControlFlowOptions) {
    const when = readWait(wait)
    super(reason ?? ('atMs' in when ? `Retry at ${when.text}` : `Retry after ${when.text}`), options)
    this.delayMs = 'atMs' in when ? undefined : when.delayMs
    this.atMs = 'atMs' in when ? when.atMs : undefined
    this.reason = reason
    mark(this, retryAfterBrand)
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isInstance(this, RetryAfter, value, retryAfterBrand)
  }
}

type Wait = { readonly delayMs: number; readonly text: string } | { readonly atMs: number; readonly text: string }

function readWait(wait: Duration | Date): Wait {
  if (isDate(wait)) {
    const atMs = wait.getTime()
    if (Number.isNaN(atMs)) {
      throw new ChokaQError('CHOKAQ_DURATION_INVALID', { name: 'RetryAfter', value: 'an invalid Date' })
    }
    return { atMs, text: wait.toISOString() }
  }
  if (typeof wait === 'object') {
    throw new ChokaQError('CHOKAQ_DURATION_INVALID', { name: 'RetryAfter', value: shortValue(wait) })
  }
  const delayMs = durationMs(wait, 'RetryAfter')
  return { delayMs, text: formatMs(delayMs) }
}

function isDate(value: unknown): value is Date {
  return value instanceof Date || tagOf(value) === 'Date'
}

/** A person must decide: the job is parked in review with `reason` and `data` (anything that can be stored as JSON). */
export class ReviewNeeded extends Error {
  override readonly name: string = 'ReviewNeeded'
  readonly reason: string
  readonly data: unknown

  constructor(reason: string, data?: unknown, options?: ControlFlowOptions) {
    super(reason, options)
    this.reason = reason
    this.data = data
    mark(this, reviewNeededBrand)
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isInstance(this, ReviewNeeded, value, reviewNeededBrand)
  }
}

/**
 * An effect was decided for good against it (a declined card): recorded, and thrown again on every later call. Uncaught
 * it ends the job, and duplicates are answered `already-failed`.
 */
export class EffectDeclined extends Error {
  override readonly name: string = 'EffectDeclined'
  readonly effect: string
  readonly code: string | undefined

  constructor(effect: string, message: string, code?: string, options?: ControlFlowOptions) {
    super(message, options)
    this.effect = effect
    this.code = code
    mark(this, effectDeclinedBrand)
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isInstance(this, EffectDeclined, value, effectDeclinedBrand)
  }
}
