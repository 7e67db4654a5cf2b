/**
 * What a provider's API promises about repeated calls. A description calls nothing: it tells the engine for how long the
 * same key is safe, what shape a key may have, and which errors prove that nothing happened. The user's `run` calls.
 */
import { unknownKeyProblem } from './did-you-mean.ts'
import { durationMs, type Duration } from './duration.ts'
import { ChokaQError } from './errors.ts'
import type { Verdict } from './classify.ts'

/** The shape of an idempotency key. */
export interface KeyFormat {
  readonly minLength: number
  readonly maxLength: number
  /** `uuid`: 36 characters; `hex`: 32 hexadecimal digits of the same hash, for providers that take no hyphens. */
  readonly form: 'uuid' | 'hex'
}

export interface ProviderDefinition {
  name: string
  /** Lengths of a key; `form` defaults to 'uuid'. */
  keyFormat: { minLength?: number; maxLength: number; form?: 'uuid' | 'hex' }
  /** How long the provider remembers a key; 'forever' where it documents no end. */
  dedupeWindow: Duration | 'forever'
  /**
   * What a repeat gets after the provider answered with a server error: `replayed`, the stored error again, so that a
   * repeat cannot succeed; `reexecuted`, a fresh try.
   */
  onProviderError: 'replayed' | 'reexecuted'
  /** The longest one call may take, the SDK's own retries included. Defaults to 2 minutes. */
  callTimeout?: Duration
  /** What the provider's errors prove; undefined leaves it to the engine's own rules. */
  classify?: (error: unknown) => Verdict | undefined
}

/** A provider as the engine reads it. */
export interface Provider {
  readonly name: string
  /** Undefined: the provider takes no key, so a repeat is a second action. */
  readonly keyed:
    | {
        readonly format: KeyFormat
        /** Infinity: for ever. */
        readonly windowMs: number
        readonly onProviderError: 'replayed' | 'reexecuted'
      }
    | undefined
  readonly callTimeoutMs: number
  readonly classify: ((error: unknown) => Verdict | undefined) | undefined
}

const fields = ['name', 'keyFormat', 'dedupeWindow', 'onProviderError', 'callTimeout', 'classify']
const defaultCallTimeoutMs = 120_000
/** Lengths of the two forms the engine can render. */
const formLength = { uuid: 36, hex: 32 } as const

/**
 * Describes a provider that takes idempotency keys.
 *
 * @example
 * const acme = defineProvider({
 *   name: 'acme',
 *   keyFormat: { maxLength: 64 },
 *   dedupeWindow: '24h',
 *   onProviderError: 'reexecuted',
 * })
 *
 * @throws CHOKAQ_PROVIDER_INVALID
 */
export function defineProvider(definition: ProviderDefinition): Provider {
  const name = typeof definition.name === 'string' ? definition.name : String(definition.name)
  const refuse = (problem: string): never => {
    throw new ChokaQError('CHOKAQ_PROVIDER_INVALID', { name, problem })
  }
  const unknown = unknownKeyProblem(definition, fields, 'defineProvider')
  if (unknown !== undefined) refuse(unknown)
  if (typeof definition.name !== 'string' || name.trim() === '') refuse('name must be a text.')
  const { minLength = 1, maxLength, form = 'uuid' } = readFormat(definition.keyFormat, refuse)
  const length = formLength[form]
  if (!Number.isInteger(maxLength) || maxLength < length || minLength > length) {
    refuse(`keyFormat allows ${minLength} to ${String(maxLength)} characters; a '${form}' key has ${length}.`)
  }
  if (definition.onProviderError !== 'replayed' && definition.onProviderError !== 'reexecuted') {
    refuse("onProviderError must be 'replayed' or 'reexecuted'.")
  }
  if (definition.classify !== undefined && typeof definition.classify !== 'function') {
    refuse('classify must be a function.')
  }
  const windowMs =
    definition.dedupeWindow === 'forever'
      ? Number.POSITIVE_INFINITY
      : durationMs(definition.dedupeWindow, `dedupeWindow of ${name}`, { minMs: 1 })
  return Object.freeze({
    name,
    keyed: Object.freeze({
      format: Object.freeze({ minLength, maxLength, form }),
      windowMs,
      onProviderError: definition.onProviderError,
    }),
    callTimeoutMs:
      definition.callTimeout === undefined
        ? defaultCallTimeoutMs
        : durationMs(definition.callTimeout, `callTimeout of ${name}`, { minMs: 1 }),
    classify: definition.classify,
  })
}

function readFormat(
  format: ProviderDefinition['keyFormat'] | undefined,
  refuse: (problem: string) => never,
): ProviderDefinition['keyFormat'] {
  if (typeof format !== 'object') return refuse('keyFormat is missing. Give { maxLength } from its documentation.')
  if (format.form !== undefined && !Object.hasOwn(formLength, format.form)) {
    return refuse("keyFormat.form must be 'uuid' or 'hex'.")
  }
  return format
}

/**
 * Describes a provider without idempotency keys: a repeat is a second action. In doubt, only `reconcile` or a person
 * can tell.
 */
export function noKey(
  name: string,
  options: { callTimeout?: Duration; classify?: Provider['classify'] } = {},
): Provider {
  return Object.freeze({
    name,
    keyed: undefined,
    callTimeoutMs:
      options.callTimeout === undefined
        ? defaultCallTimeoutMs
        : durationMs(options.callTimeout, `callTimeout of ${name}`, { minMs: 1 }),
    classify: options.classify,
  })
}

/** A key in the provider's form. Both forms are the same 128 bits. */
export function renderKey(provider: Provider, uuid: string): string {
  return provider.keyed?.format.form === 'hex' ? uuid.replaceAll('-', '') : uuid
}
