/** An effect: one declared action on the outside world, with an intent written before it and an outcome after. */
import type { Stored } from './contract.ts'
import { unknownKeyProblem } from './did-you-mean.ts'
import { durationMs, type Duration } from './duration.ts'
import { ChokaQError } from './errors.ts'
import type { Provider } from './provider.ts'

export interface CallOptions {
  /** The same on every attempt of the same operation. Pass it to the provider. */
  readonly idempotencyKey: string
  /** Aborts with the attempt, and where the call takes longer than its `callTimeout`. Pass it to the client. */
  readonly signal: AbortSignal
}

/** What a look at the provider found. */
export type Found<R> = { present: R } | 'absent' | 'unknown'

export interface EffectDefinition<I, R> {
  /** Stable: part of the effect's identity. */
  name: string
  provider: Provider
  /** The call. Its result is stored as JSON: return ids, not documents. */
  run(input: I, options: CallOptions): Promise<R>
  /** Asks the provider whether it happened. Never acts. */
  reconcile?(input: NoInfer<I>, options: CallOptions): Promise<Found<NoInfer<R>>>
  /** How old an intent must be before `absent` is believed: the provider's reads may lag. Defaults to callTimeout + D + S. */
  settleAfter?: Duration
  /** How long `unknown` is waited out before it goes to review. Defaults to 1 hour. */
  reconcileFor?: Duration
  /** Undoes it. Runs on a worker, as an effect with a key of its own. */
  compensate?(input: NoInfer<I>, result: Stored<NoInfer<R>>, options: CallOptions): Promise<void>
  /** The longest one call may take, the SDK's retries included; then its signal aborts. Defaults to the provider's. */
  callTimeout?: Duration
}

export interface Effect<I, R> {
  readonly name: string
  readonly __i?: (input: I) => void
  readonly __r?: R
}

/** Effects of one handler have different inputs and results; the map only needs to hold them. */
export type Effects = Readonly<Record<string, Effect<never, unknown>>>

export type EffectCalls<E extends Effects> = {
  readonly [K in keyof E]: E[K] extends Effect<infer I, infer R>
    ? (input: I, options?: { item?: string }) => Promise<Stored<R>>
    : never
}

/** The effect as the engine reads it. */
export interface ResolvedEffect {
  readonly name: string
  readonly provider: Provider
  readonly callTimeoutMs: number
  /** Undefined: derived from the worker's windows. */
  readonly settleAfterMs: number | undefined
  readonly reconcileForMs: number
  readonly run: (input: unknown, options: CallOptions) => Promise<unknown>
  readonly reconcile: ((input: unknown, options: CallOptions) => Promise<Found<unknown>>) | undefined
  readonly compensate: ((input: unknown, result: unknown, options: CallOptions) => Promise<void>) | undefined
}

const effectSymbol = Symbol.for('chokaq.effect')
const fields = ['name', 'provider', 'run', 'reconcile', 'settleAfter', 'reconcileFor', 'compensate', 'callTimeout']
const namePattern = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/
const defaultReconcileForMs = 3_600_000

/**
 * Declares an effect. Where a crash leaves it in doubt, the engine repeats it under the same key while the provider
 * remembers that key, else asks `reconcile`, else parks the job for a person. It never guesses.
 *
 * @example
 * const charge = defineEffect({
 *   name: 'charge',
 *   provider: stripe,
 *   run: (i: { amount: number }, { idempotencyKey }) => sdk.charges.create(i, { idempotencyKey }),
 * })
 *
 * @throws CHOKAQ_EFFECT_INVALID
 */
export function defineEffect<I, R>(definition: EffectDefinition<I, R>): Effect<I, R> {
  const resolved = resolveEffect(definition as unknown as Readonly<Record<string, unknown>>)
  const effect: Effect<I, R> = { name: resolved.name }
  Object.defineProperty(effect, effectSymbol, { value: resolved })
  return Object.freeze(effect)
}

/** The resolved effect behind what defineEffect returned; undefined for anything else. */
export function effectOf(effect: unknown): ResolvedEffect | undefined {
  if (typeof effect !== 'object' || effect === null) return undefined
  return (effect as { readonly [effectSymbol]?: ResolvedEffect })[effectSymbol]
}

function resolveEffect(d: Readonly<Record<string, unknown>>): ResolvedEffect {
  const name = typeof d['name'] === 'string' ? d['name'] : String(d['name'])
  const refuse = (problem: string): never => {
    throw new ChokaQError('CHOKAQ_EFFECT_INVALID', { name, problem })
  }
  const unknown = unknownKeyProblem(d, fields, 'defineEffect')
  if (unknown !== undefined) refuse(unknown)
  if (typeof d['name'] !== 'string' || !namePattern.test(name))
    refuse("name must be 1 to 64 letters, digits or . _ -, beginning with a letter, such as 'charge'.")
  for (const field of ['reconcile', 'compensate']) {
    if (d[field] !== undefined && typeof d[field] !== 'function') refuse(`${field} must be a function.`)
  }
  if (typeof d['run'] !== 'function') refuse('run must be a function.')
  const provider = d['provider'] as Provider | undefined
  if (typeof provider?.callTimeoutMs !== 'number') {
    return refuse(
      "provider is missing. Give a ready one (stripe …), defineProvider(…), or noKey('name') where it takes no keys.",
    )
  }
  const ms = (field: string): number | undefined =>
    d[field] === undefined
      ? undefined
      : durationMs(d[field] as Duration, `${field} of effect ${name}`, { minMs: field === 'callTimeout' ? 1 : 0 })
  return Object.freeze({
    name,
    provider,
    callTimeoutMs: ms('callTimeout') ?? provider.callTimeoutMs,
    settleAfterMs: ms('settleAfter'),
    reconcileForMs: ms('reconcileFor') ?? defaultReconcileForMs,
    run: d['run'] as ResolvedEffect['run'],
    reconcile: d['reconcile'] as ResolvedEffect['reconcile'],
    compensate: d['compensate'] as ResolvedEffect['compensate'],
  })
}
