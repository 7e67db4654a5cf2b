/**
 * From a payload to a row, and back. Producer and worker share these steps, so that a key computed on either side is the
 * same: the *input* JSON is stored, and key, sameWhen and run get the parsed output of the stored JSON on both sides.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { canonicalText, fingerprintOf } from './canonical-json.ts'
import type { JobContract } from './contract.ts'
import { ChokaQError } from './errors.ts'
import { describeFailure, failureText } from './failure.ts'
import type { JobKey } from './job.ts'
import { parseJson, toJsonText } from './json-image.ts'
import { keyHash, keyPrefix, keyProblem } from './key-canon.ts'

export interface Hashing {
  sha256(text: string): string
  byteLength(text: string): number
}

/** A payload that passed its schema. */
export interface PreparedPayload {
  /** JSON text of the input, as it is stored. */
  readonly text: string
  /** The stored input, parsed again. */
  readonly input: unknown
  /** What the schema made of it: what key, sameWhen and run get. */
  readonly output: unknown
}

/** Turns a payload into its JSON text. */
export function payloadText(contract: JobContract, payload: unknown, maxBytes: number, hashing: Hashing): string {
  return toJsonText(payload, `The payload of "${contract.type}"`, {
    maxBytes,
    byteLength: (text) => hashing.byteLength(text),
  })
}

/** Parses and validates stored JSON text. A promise only where the schema is asynchronous. */
export function readPayload(contract: JobContract, text: string): PreparedPayload | Promise<PreparedPayload> {
  const checked = validate(contract.payload, parseJson(text))
  if (checked instanceof Promise) return checked.then((result) => prepared(contract, text, result))
  return prepared(contract, text, checked)
}

function prepared(contract: JobContract, text: string, result: Validated): PreparedPayload {
  if (result.issues !== undefined) {
    throw new ChokaQError('CHOKAQ_PAYLOAD_INVALID', { type: contract.type, issues: result.issues })
  }
  return new Payload(text, result.value)
}

/** Its input is parsed again when it is asked for: a schema may have changed the one that it got, and few look. */
class Payload implements PreparedPayload {
  readonly text: string
  readonly output: unknown

  constructor(text: string, output: unknown) {
    this.text = text
    this.output = output
  }

  get input(): unknown {
    return parseJson(this.text)
  }
}

type Validated =
  | { readonly issues: readonly string[]; readonly value?: undefined }
  | { readonly issues?: undefined; readonly value: unknown }

/** Runs a Standard Schema. A schema that throws is an issue like any other. */
export function validate(schema: StandardSchemaV1, value: unknown): Validated | Promise<Validated> {
  const failed = (thrown: unknown): Validated => ({
    issues: [`the schema threw: ${failureText(describeFailure(thrown))}`],
  })
  try {
    const result = schema['~standard'].validate(value)
    return result instanceof Promise ? result.then(readResult).catch(failed) : readResult(result)
  } catch (thrown) {
    return failed(thrown)
  }
}

const maxIssueCount = 20

function readResult(result: StandardSchemaV1.Result<unknown>): Validated {
  if (result.issues === undefined) return { value: result.value }
  const issues = result.issues.slice(0, maxIssueCount).map((issue) => `${pathText(issue.path)}: ${issue.message}`)
  return { issues: issues.length > 0 ? issues : ['$: refused without a reason'] }
}

function pathText(path: StandardSchemaV1.Issue['path']): string {
  let text = '$'
  for (const part of path ?? []) {
    const key = typeof part === 'object' ? part.key : part
    text += typeof key === 'number' ? `[${key}]` : `.${String(key)}`
  }
  return text
}

/**
 * The text of a result as its schema gives it; null for undefined. A promise only where the schema is asynchronous.
 *
 * @throws CHOKAQ_RESULT_INVALID, and what `toText` throws; an asynchronous schema rejects instead
 */
export function checkResult(
  contract: JobContract,
  result: unknown,
  toText: (value: unknown) => string,
): string | null | Promise<string | null> {
  const textOf = (value: unknown): string | null => (value === undefined ? null : toText(value))
  if (contract.result === undefined) return textOf(result)
  const read = (checked: Validated): string | null => {
    if (checked.issues !== undefined) {
      throw new ChokaQError('CHOKAQ_RESULT_INVALID', { type: contract.type, issues: checked.issues })
    }
    return textOf(checked.value)
  }
  const checked = validate(contract.result, result)
  return checked instanceof Promise ? checked.then(read) : read(checked)
}

/** As checkResult, where there is no time to wait. @throws CHOKAQ_TX_UNSUPPORTED for an asynchronous schema, too */
export function checkResultSync(...args: Parameters<typeof checkResult>): string | null {
  const text = checkResult(...args)
  if (!(text instanceof Promise)) return text
  // The rejection would otherwise surface as unhandled beside the error thrown here.
  text.catch(() => undefined)
  throw new ChokaQError('CHOKAQ_TX_UNSUPPORTED', {
    call: 'completeSync',
    problem: `the result schema of "${args[0].type}" is asynchronous; a synchronous transaction cannot wait for it`,
  })
}

export interface KeyedFields {
  readonly key: JobKey | undefined
  readonly fingerprint: string | undefined
}

/**
 * The key and fingerprint of a payload; both undefined for a contract without a key. The key function runs twice: one
 * that gives two answers (a random id, a counter) would defeat its purpose on every retry.
 *
 * @throws CHOKAQ_EMPTY_KEY, CHOKAQ_KEY_THROWN, CHOKAQ_CONTRACT_INVALID (the key is not stable)
 */
export function keyedFields(
  contract: JobContract,
  payload: PreparedPayload,
  job: { readonly id: string; readonly tenant: string | undefined },
  hashing: Hashing,
): KeyedFields {
  if (contract.key === 'none') return { key: undefined, fingerprint: undefined }
  const key = contract.key === 'job-id' ? job.id : computeKey(contract, contract.key, payload.output)
  const parts = { scope: contract.keyScope, key, ...(job.tenant === undefined ? {} : { tenant: job.tenant }) }
  return {
    key: {
      hash: keyHash(parts, (text) => hashing.sha256(text)),
      prefix: keyPrefix(key),
      scope: contract.keyScope,
    },
    fingerprint: fingerprintOf(whatMustBeSame(contract, payload), (text) => hashing.sha256(text)),
  }
}

/** The key itself, for the handler; undefined without one, or where an older payload no longer gives it. */
export function keyText(contract: JobContract, output: unknown, jobId: string): string | undefined {
  if (contract.key === 'none') return undefined
  try {
    return contract.key === 'job-id' ? jobId : computeKey(contract, contract.key, output)
  } catch {
    return undefined
  }
}

function computeKey(contract: JobContract, keyOf: (payload: unknown) => unknown, output: unknown): string {
  const call = (): unknown => {
    try {
      return keyOf(output)
    } catch (cause) {
      throw new ChokaQError('CHOKAQ_KEY_THROWN', { type: contract.type, problem: 'key' }, { cause })
    }
  }
  const key = call()
  const problem = keyProblem(key)
  if (problem !== undefined) throw new ChokaQError('CHOKAQ_EMPTY_KEY', { type: contract.type, value: problem })
  if (call() !== key) {
    throw new ChokaQError('CHOKAQ_CONTRACT_INVALID', {
      type: contract.type,
      problem: 'its key function gave two different keys for one payload. A key must depend on the payload alone.',
    })
  }
  return key as string
}

/** The value whose equality the fingerprint stands for: sameWhen of the output, else the whole input. */
export function whatMustBeSame(contract: JobContract, payload: PreparedPayload): unknown {
  if (contract.sameWhen === undefined) return payload.input
  try {
    const value = contract.sameWhen(payload.output)
    canonicalText(value)
    return value
  } catch (cause) {
    throw new ChokaQError('CHOKAQ_KEY_THROWN', { type: contract.type, problem: 'sameWhen' }, { cause })
  }
}
