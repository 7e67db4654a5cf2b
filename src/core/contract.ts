/**
 * A contract: what producer and worker agree on. It pulls in no handler, no driver and no engine, so a web app can
 * import it without paying for them.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { unknownKeyProblem } from './did-you-mean.ts'
import { durationMs, type Duration } from './duration.ts'
import { ChokaQError } from './errors.ts'
import { keyScopeOf } from './key-canon.ts'

export type PayloadIn<S extends StandardSchemaV1> = StandardSchemaV1.InferInput<S>
export type PayloadOut<S extends StandardSchemaV1> = StandardSchemaV1.InferOutput<S>

/** What a value is after a trip through JSON; what every stored result is typed as. */
export type Stored<T> = T extends { toJSON(): infer J }
  ? J
  : T extends string | number | boolean | null
    ? T
    : T extends undefined | bigint | symbol | ((...a: never[]) => unknown)
      ? never
      : T extends readonly (infer E)[]
        ? Stored<E>[]
        : T extends object
          ? { [K in keyof T as Stored<T[K]> extends never ? never : K]: Stored<T[K]> }
          : never

/** A job's contract. `S` is its payload schema, `R` its result, `Keyed` whether it has a business key. */
export interface Job<S extends StandardSchemaV1 = StandardSchemaV1, R = unknown, Keyed extends boolean = boolean> {
  readonly type: string
  readonly payload: S
  readonly __result?: R
  readonly __keyed?: Keyed
}

interface JobBase<S extends StandardSchemaV1, RS extends StandardSchemaV1> {
  /** Stable name such as 'payment.capture.v1'; never a class or file name. Letters, digits, '.', '_', ':', '/', '-'. */
  type: string
  /** Any Standard Schema (zod, valibot, arktype …). It checks the JSON image of the payload, on both sides. */
  payload: S
  /** Checks what the handler returns, before it is stored. */
  result?: RS
  /** Defaults to 'default'. */
  queue?: string
  /** What must be equal for the same key. Defaults to the whole payload. */
  sameWhen?: (payload: PayloadOut<S>) => unknown
  /** Scope of the key. Defaults to the type without its '.vN', so that all versions share claims and markers. */
  keyScope?: string
  /** Whether it may be enqueued without the contract (SQL, CLI); the worker then computes the key. Defaults to false. */
  allowRaw?: boolean
}

/** The contract as the engine reads it. */
export interface JobContract {
  readonly type: string
  readonly queue: string
  readonly payload: StandardSchemaV1
  readonly result: StandardSchemaV1 | undefined
  /** 'none': no key. 'job-id': each enqueue is its own operation. */
  readonly key: 'none' | 'job-id' | ((payload: unknown) => unknown)
  readonly sameWhen: ((payload: unknown) => unknown) | undefined
  readonly keyScope: string
  readonly duplicateWindowMs: number
  readonly allowRaw: boolean
}

const contractSymbol = Symbol.for('chokaq.contract')
const typePattern = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/
const fields = ['type', 'payload', 'result', 'queue', 'sameWhen', 'keyScope', 'allowRaw', 'key', 'duplicateWindow']

/**
 * Declares a job: its name, the shape of its payload, and its business key.
 *
 * `key` answers the first question (what is the business key?), `duplicateWindow` the third (how long can duplicates
 * arrive?). `key: 'job-id'` says that every enqueue is an operation of its own.
 *
 * @example
 * const capturePayment = defineJob({
 *   type: 'payment.capture.v1',
 *   payload: z.object({ paymentAttemptId: z.string(), amountCents: z.int().positive() }),
 *   result: z.object({ chargeId: z.string() }),
 *   key: (p) => p.paymentAttemptId,
 *   duplicateWindow: '60d',
 * })
 *
 * @throws CHOKAQ_CONTRACT_INVALID where a field is missing or wrong.
 */
export function defineJob<S extends StandardSchemaV1, RS extends StandardSchemaV1 = StandardSchemaV1<unknown, void>>(
  definition: JobBase<S, RS> &
    ({ key: 'job-id' } | { key: (payload: PayloadOut<S>) => string; duplicateWindow: Duration }),
): Job<S, PayloadOut<RS>, true>
export function defineJob<S extends StandardSchemaV1, RS extends StandardSchemaV1 = StandardSchemaV1<unknown, void>>(
  definition: JobBase<S, RS>,
): Job<S, PayloadOut<RS>, false>
export function defineJob(definition: object): Job {
  const contract = readContract(definition as Readonly<Record<string, unknown>>)
  const job: Job = { type: contract.type, payload: contract.payload }
  Object.defineProperty(job, contractSymbol, { value: contract })
  return Object.freeze(job)
}

/** The contract behind what defineJob returned. */
export function contractOf(job: Job): JobContract {
  const contract = (job as { readonly [contractSymbol]?: JobContract })[contractSymbol]
  if (contract === undefined) {
    throw new ChokaQError('CHOKAQ_CONTRACT_INVALID', {
      type: String((job as { readonly type?: unknown } | undefined)?.type),
      problem: 'it was not made by defineJob. Pass what defineJob returned.',
    })
  }
  return contract
}

/** Whether a value is what defineJob returned. */
export function isJob(value: unknown): value is Job {
  return typeof value === 'object' && value !== null && contractSymbol in value
}

function readContract(d: Readonly<Record<string, unknown>>): JobContract {
  const type = typeof d['type'] === 'string' ? d['type'] : String(d['type'])
  const refuse = (problem: string): never => {
    throw new ChokaQError('CHOKAQ_CONTRACT_INVALID', { type, problem })
  }
  const unknown = unknownKeyProblem(d, fields, 'defineJob')
  if (unknown !== undefined) refuse(unknown)
  if (typeof d['type'] !== 'string' || !typePattern.test(type)) {
    refuse(
      "type must be 1 to 128 letters, digits or . _ : / -, beginning with a letter or digit, such as 'payment.capture.v1'.",
    )
  }
  if (!isSchema(d['payload'])) refuse('payload must be a Standard Schema (zod, valibot, arktype …).')
  if (d['result'] !== undefined && !isSchema(d['result'])) refuse('result must be a Standard Schema.')
  if (d['sameWhen'] !== undefined && typeof d['sameWhen'] !== 'function') refuse('sameWhen must be a function.')
  const key = readKey(d['key'], refuse)
  if (typeof key === 'function' && d['duplicateWindow'] === undefined) {
    refuse("a key function needs duplicateWindow: how long can duplicates arrive? For example duplicateWindow: '60d'.")
  }
  const keyScope = optionalText(d['keyScope'], 'keyScope', refuse) ?? keyScopeOf(type)
  return Object.freeze({
    type,
    queue: optionalText(d['queue'], 'queue', refuse) ?? 'default',
    payload: d['payload'] as StandardSchemaV1,
    result: d['result'] as StandardSchemaV1 | undefined,
    key,
    sameWhen: d['sameWhen'] as ((payload: unknown) => unknown) | undefined,
    keyScope,
    duplicateWindowMs:
      d['duplicateWindow'] === undefined
        ? 0
        : durationMs(d['duplicateWindow'] as Duration, `duplicateWindow of ${type}`),
    allowRaw: d['allowRaw'] === true,
  })
}

function readKey(key: unknown, refuse: (problem: string) => never): JobContract['key'] {
  if (key === undefined) return 'none'
  if (key === 'job-id') return 'job-id'
  if (typeof key === 'function') return key as (payload: unknown) => unknown
  return refuse("key must be a function of the payload, or 'job-id' where each enqueue is an operation of its own.")
}

function optionalText(value: unknown, name: string, refuse: (problem: string) => never): string | undefined {
  if (value === undefined) return undefined
  if (typeof value === 'string' && value.length > 0 && value.length <= 128) return value
  return refuse(`${name} must be a text of 1 to 128 characters.`)
}

function isSchema(value: unknown): value is StandardSchemaV1 {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard = (value as { readonly '~standard'?: { readonly validate?: unknown } })['~standard']
  return typeof standard?.validate === 'function'
}
