import type { StandardSchemaV1 } from '@standard-schema/spec'
import { whole } from '../core/config.ts'
import type { Job, JobContract, PayloadIn } from '../core/contract.ts'
import { hasCode } from '../core/errors.ts'
import type { ChokaQ } from '../engine/enqueue/client.ts'
import { type ChokaQParts, partsOf } from '../engine/parts.ts'
import { buryConflict } from './bury-conflict.ts'
import { checkOptions, keyedContract } from './keyed-contract.ts'
import { jsonResponse, Refusal } from './problem.ts'
import { defaultMaxBodyBytes, readBody } from './read-body.ts'
import { type ErrorListener, receiver, report, type RequestHandler } from './receiver.ts'

export interface WebhookOptions<S extends StandardSchemaV1> {
  chokaq: ChokaQ
  /** Its key comes from the payload: the sender's event id or, where several events tell of one fact, that fact. */
  job: Job<S, unknown, true>
  /**
   * Whether the sender signed these bytes; see verifyHmacSha256. Called before anything is parsed. Anything but `true`
   * is a no, and so is an error: the sender gets 401 and no detail, `onError` the error.
   */
  verify(raw: Uint8Array, headers: Headers): boolean | Promise<boolean>
  /** The job's payload, from verified bytes. An error it throws is answered with 400. */
  payload(raw: Uint8Array, headers: Headers): PayloadIn<S> | Promise<PayloadIn<S>>
  /** Larger bodies get 413, bytes. Defaults to 1,000,000. */
  maxBodyBytes?: number
  /** Hears what the sender is not told: errors of your callbacks, of the schema and of the storage, and new conflicts. */
  onError?: ErrorListener
}

/**
 * A receiver of webhooks: each event becomes one job, however often it is delivered. It answers 2xx only once the job is
 * stored durably or known to be a duplicate; after everything else the sender should deliver again.
 *
 * 202 `{ id, outcome: 'enqueued' }` · 200 `{ id, outcome }` for each `already-…` outcome · 200 `{ outcome: 'conflict' }`
 * for another payload under a known key · 400 the payload is refused · 401 not verified · 405 not POST · 413 too large ·
 * 500 · 503 with Retry-After while the storage is away.
 *
 * Why a conflict gets 2xx: the sender can only send the same again, so an error would be repeated until it disables the
 * hook. The delivery is kept as one dead job (`KeyReused`) per key and payload for a person; `id` names the new row.
 *
 * @example
 * export const POST = webhook({
 *   chokaq,
 *   job: orderPaid,
 *   verify: verifyHmacSha256({ secret, header: 'x-hub-signature-256', prefix: 'sha256=' }),
 *   payload: (raw, headers) => ({ deliveryId: headers.get('x-github-delivery') ?? '', size: raw.length }),
 * })
 *
 * @throws CHOKAQ_CONFIG_INVALID where the contract has no key function or an option is wrong
 */
export function webhook<S extends StandardSchemaV1>(options: WebhookOptions<S>): RequestHandler {
  const functions = { required: ['verify', 'payload'], optional: ['onError'] }
  checkOptions('webhook', options, functions, ['chokaq', 'job', 'maxBodyBytes'])
  const contract = keyedContract(options.job, 'webhook')
  const parts = partsOf(options.chokaq)
  const maxBodyBytes = whole(options.maxBodyBytes, 'maxBodyBytes', defaultMaxBodyBytes, 1, 50_000_000)
  return receiver({ onError: options.onError }, async (request) => {
    const raw = await readBody(request, maxBodyBytes)
    await verified(options, raw, request.headers)
    const payload = await payloadOf(options, raw, request.headers)
    return enqueued(options, parts, contract, payload)
  })
}

async function verified<S extends StandardSchemaV1>(
  options: WebhookOptions<S>,
  raw: Uint8Array,
  headers: Headers,
): Promise<void> {
  const refusal = { status: 401, code: 'not-authorized', title: 'The signature does not verify.' } as const
  let answer: unknown
  try {
    answer = await options.verify(raw, headers)
  } catch (cause) {
    throw new Refusal(refusal, { cause })
  }
  // Strictly true: what an untyped callback returns by mistake (an object, a text) must not open the door.
  if (answer !== true) throw new Refusal(refusal)
}

async function payloadOf<S extends StandardSchemaV1>(
  options: WebhookOptions<S>,
  raw: Uint8Array,
  headers: Headers,
): Promise<PayloadIn<S>> {
  try {
    return await options.payload(raw, headers)
  } catch (cause) {
    const title = 'The body is not what is expected here.'
    throw new Refusal({ status: 400, code: 'payload-invalid', title }, { cause })
  }
}

async function enqueued<S extends StandardSchemaV1>(
  options: WebhookOptions<S>,
  parts: ChokaQParts,
  contract: JobContract,
  payload: PayloadIn<S>,
): Promise<Response> {
  try {
    const { id, outcome } = await options.chokaq.enqueue(options.job, payload)
    return jsonResponse(outcome === 'enqueued' ? 202 : 200, { id, outcome })
  } catch (error) {
    if (!hasCode(error, 'CHOKAQ_KEY_REUSED')) throw error
    const id = await buryConflict(parts, contract, payload, error)
    if (id === undefined) return jsonResponse(200, { outcome: 'conflict' })
    report(options.onError, error, { status: 200, code: 'key-reused' })
    return jsonResponse(200, { outcome: 'conflict', id })
  }
}
