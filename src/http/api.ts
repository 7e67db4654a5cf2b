import type { StandardSchemaV1 } from '@standard-schema/spec'
import { whole } from '../core/config.ts'
import type { Job, JobContract, PayloadIn } from '../core/contract.ts'
import { hasCode } from '../core/errors.ts'
import type { EnqueueResult } from '../engine/enqueue/answer.ts'
import type { ChokaQ } from '../engine/enqueue/client.ts'
import { readName, type EnqueueOptions } from '../engine/enqueue/enqueue-options.ts'
import { prepareJob } from '../engine/enqueue/prepare-job.ts'
import { type ChokaQParts, partsOf } from '../engine/parts.ts'
import { readIdempotencyKey } from './idempotency-key.ts'
import { createHeaderCheck } from './key-follows-header.ts'
import { checkOptions, keyedContract, misconfigured } from './keyed-contract.ts'
import { jsonResponse, Refusal } from './problem.ts'
import { defaultMaxBodyBytes, readBody } from './read-body.ts'
import { type ErrorListener, receiver, type RequestHandler } from './receiver.ts'

/** `true` lets the client in, `{ tenant }` too and gives it keys of its own; `false` answers 401. */
export type Authorization = boolean | { readonly tenant: string }

export interface ApiOptions<S extends StandardSchemaV1> {
  chokaq: ChokaQ
  /** Its key function must return the idempotency key that `payload` puts into the payload. */
  job: Job<S, unknown, true>
  /**
   * The job's payload from the parsed body and the client's idempotency key. Called once more at the first request with a
   * key of ChokaQ's own, to see that the job's key follows the header: it must be pure. What it throws becomes a 400.
   */
  payload(body: unknown, idempotencyKey: string, headers: Headers): PayloadIn<S> | Promise<PayloadIn<S>>
  /**
   * Who may post. Answer `{ tenant }` with the client's identity where clients do not trust each other: without it, a
   * client that knows another's key gets the other's result. An error it throws is a no. Defaults to everybody.
   */
  authorize?(headers: Headers, raw: Uint8Array): Authorization | Promise<Authorization>
  /** Larger bodies get 413, bytes. Defaults to 1,000,000. */
  maxBodyBytes?: number
  /** Address of your page on idempotency; it becomes the `type` of every problem. Defaults to 'about:blank'. */
  documentation?: string
  /** Hears what the client is not told: errors of your callbacks, of the schema and of the storage. */
  onError?: ErrorListener
}

/**
 * An endpoint with the Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header-07): a client repeats a request
 * whose answer it lost, and the work happens once.
 *
 * 202 `{ id, outcome: 'enqueued' }` at first · 409 while the job is not finished (Retry-After says when to ask again) ·
 * 200 `{ id, outcome: 'already-completed', result }` afterwards · 422 `key-reused` for another body under the key ·
 * 422 `failed` where the job failed for good · 410 `compensated` where it was undone · 400, 401, 405, 413, 415, 500, 503.
 * Problems are `application/problem+json` with a stable `code`.
 *
 * @example
 * export const POST = api({
 *   chokaq,
 *   job: createOrder, // defineJob({ …, key: (p) => p.requestKey, duplicateWindow: '7d' })
 *   payload: (body, idempotencyKey) => ({ requestKey: idempotencyKey, order: orderOf(body) }),
 * })
 *
 * @throws CHOKAQ_CONFIG_INVALID where the contract has no key function or an option is wrong
 */
export function api<S extends StandardSchemaV1>(options: ApiOptions<S>): RequestHandler {
  const functions = { required: ['payload'], optional: ['authorize', 'onError'] }
  checkOptions('api', options, functions, ['chokaq', 'job', 'maxBodyBytes', 'documentation'])
  const contract = keyedContract(options.job, 'api')
  const parts = partsOf(options.chokaq)
  const maxBodyBytes = whole(options.maxBodyBytes, 'maxBodyBytes', defaultMaxBodyBytes, 1, 50_000_000)
  const checkHeader = createHeaderCheck(contract.type)
  return receiver({ onError: options.onError, documentation: options.documentation }, async (request) => {
    const { headers } = request
    requireJson(headers)
    const raw = await readBody(request, maxBodyBytes)
    const enqueueOptions = await authorized(options, headers, raw)
    const key = readIdempotencyKey(headers)
    const payloadUnder = payloadReader(options, textOf(raw), headers)
    const hashUnder = async (each: string) => keyHashOf(parts, contract, await payloadUnder(each), enqueueOptions)
    await checkHeader(hashUnder, key, parts.runtime.newId())
    return enqueued(options, await payloadUnder(key), enqueueOptions)
  })
}

/** Only UTF-8 JSON, and only as it is: a compressed body would not be the bytes that `authorize` sees signed. */
function requireJson(headers: Headers): void {
  const [mediaType = '', ...parameters] = (headers.get('content-type') ?? '').toLowerCase().split(';')
  const isJson = /^application\/(json|[\w.!#$&^+-]+\+json)$/.test(mediaType.trim())
  const isUtf8 = parameters.every((each) => !/^\s*charset=/.test(each) || /^\s*charset="?utf-8"?\s*$/.test(each))
  const encoding = headers.get('content-encoding') ?? 'identity'
  if (isJson && isUtf8 && encoding.toLowerCase() === 'identity') return
  throw new Refusal({
    status: 415,
    code: 'unsupported-media-type',
    title: 'The body must be uncompressed application/json in UTF-8.',
    headers: { accept: 'application/json' },
  })
}

async function authorized<S extends StandardSchemaV1>(
  options: ApiOptions<S>,
  headers: Headers,
  raw: Uint8Array,
): Promise<EnqueueOptions> {
  if (options.authorize === undefined) return {}
  const refusal = { status: 401, code: 'not-authorized', title: 'The request is not authorized.' } as const
  let answer: unknown
  try {
    answer = await options.authorize(headers, raw)
  } catch (cause) {
    throw new Refusal(refusal, { cause })
  }
  if (answer === true) return {}
  const tenant = typeof answer === 'object' && answer !== null && 'tenant' in answer ? answer.tenant : undefined
  // An object without a tenant is neither yes nor no; letting it in would mix the keys of two clients.
  if (answer !== false && tenant === undefined) misconfigured('authorize of api must answer true, false or { tenant }.')
  if (answer === false) throw new Refusal(refusal)
  return { tenant: readName(tenant, 'tenant') }
}

function textOf(raw: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(raw)
  } catch (cause) {
    throw new Refusal({ status: 400, code: 'not-json', title: 'The body is not UTF-8.' }, { cause })
  }
}

/** Parses anew for each call, so that no call sees what another did to the body. */
function payloadReader<S extends StandardSchemaV1>(
  options: ApiOptions<S>,
  text: string,
  headers: Headers,
): (idempotencyKey: string) => Promise<PayloadIn<S>> {
  return async (idempotencyKey) => {
    let body: unknown
    try {
      body = JSON.parse(text)
    } catch (cause) {
      throw new Refusal({ status: 400, code: 'not-json', title: 'The body is not JSON.' }, { cause })
    }
    try {
      return await options.payload(body, idempotencyKey, headers)
    } catch (cause) {
      const title = 'The body is not what is expected here.'
      throw new Refusal({ status: 400, code: 'payload-invalid', title }, { cause })
    }
  }
}

async function keyHashOf(
  { config, runtime }: ChokaQParts,
  contract: JobContract,
  payload: unknown,
  options: EnqueueOptions,
): Promise<string | undefined> {
  const { row } = await prepareJob(contract, payload, options, config, runtime)
  return row.key?.hash
}

async function enqueued<S extends StandardSchemaV1>(
  options: ApiOptions<S>,
  payload: PayloadIn<S>,
  enqueueOptions: EnqueueOptions,
): Promise<Response> {
  try {
    return answerOf(await options.chokaq.enqueue(options.job, payload, enqueueOptions))
  } catch (cause) {
    if (!hasCode(cause, 'CHOKAQ_KEY_REUSED')) throw cause
    // Unlike a webhook's sender, this client can be told, so nothing is kept of its mistake.
    const title = 'This Idempotency-Key was used with another body.'
    throw new Refusal({ status: 422, code: 'key-reused', title }, { cause })
  }
}

function answerOf(result: EnqueueResult<unknown>): Response {
  const { id, outcome } = result
  const members = { id, outcome }
  switch (outcome) {
    case 'enqueued':
      return jsonResponse(202, members)
    case 'already-completed':
      return jsonResponse(200, { ...members, result: result.result })
    case 'already-active': {
      const title = 'The first request with this Idempotency-Key is not finished.'
      throw new Refusal({ status: 409, code: 'in-progress', title, members, headers: { 'retry-after': '1' } })
    }
    case 'already-in-review': {
      const title = 'A person has to decide what became of the first request with this Idempotency-Key.'
      throw new Refusal({ status: 409, code: 'in-review', title, members, headers: { 'retry-after': '60' } })
    }
    case 'already-failed': {
      // The message was written for operators and may name insides; a code is a name the handler chose.
      const { code } = result.error
      const title = 'The request with this Idempotency-Key failed for good.'
      const error = code === undefined ? {} : { code }
      throw new Refusal({ status: 422, code: 'failed', title, members: { ...members, error } })
    }
    case 'already-compensated': {
      const title = 'The request with this Idempotency-Key was carried out and undone since.'
      throw new Refusal({ status: 410, code: 'compensated', title, members })
    }
  }
}
