/** From a payload and options to a row: everything is checked before anything is written. */
import type { ClientConfig } from '../../core/config.ts'
import type { JobContract } from '../../core/contract.ts'
import { ChokaQError } from '../../core/errors.ts'
import type { NewJob } from '../../core/job.ts'
import { keyedFields, payloadText, readPayload, type PreparedPayload } from '../../core/preparation.ts'
import type { Runtime } from '../../core/runtime.ts'
import { resolveEnqueueOptions, type EnqueueOptions } from './enqueue-options.ts'

export interface PreparedJob {
  readonly row: NewJob
  /** Kept for the paths of a CHOKAQ_KEY_REUSED message. */
  readonly payload: PreparedPayload
}

/** Internal extras of children: an id derived from the parent, and the parent's id. */
export interface Lineage {
  readonly id?: string
  readonly parentId?: string
}

/** A promise only where the payload's schema is asynchronous. */
export function prepareJob(
  contract: JobContract,
  payload: unknown,
  options: EnqueueOptions,
  config: ClientConfig,
  runtime: Runtime,
  lineage: Lineage = {},
): PreparedJob | Promise<PreparedJob> {
  const resolved = resolveEnqueueOptions(options, config.maxDelayMs, runtime.clock.nowMs())
  const text = payloadText(contract, payload, config.maxPayloadBytes, runtime)
  const finish = (prepared: PreparedPayload): PreparedJob => {
    const id = lineage.id ?? resolved.id ?? runtime.newId()
    const keyed = keyedFields(contract, prepared, { id, tenant: resolved.tenant }, runtime)
    return {
      payload: prepared,
      row: {
        id,
        type: contract.type,
        queue: resolved.queue ?? contract.queue,
        payload: text,
        priority: resolved.priority,
        due: resolved.due,
        tenant: resolved.tenant,
        key: keyed.key,
        fingerprint: keyed.fingerprint,
        tags: resolved.tags,
        traceContext: undefined,
        mayExist: lineage.id !== undefined || resolved.id !== undefined,
        parentId: lineage.parentId,
      },
    }
  }
  const read = readPayload(contract, text)
  return read instanceof Promise ? read.then(finish) : finish(read)
}

/** As prepareJob, where there is no time to wait. */
export function prepareJobSync(...args: Parameters<typeof prepareJob>): PreparedJob {
  const prepared = prepareJob(...args)
  if (prepared instanceof Promise) {
    // The rejection would otherwise surface as unhandled beside the error thrown here.
    prepared.catch(() => undefined)
    throw new ChokaQError('CHOKAQ_TX_UNSUPPORTED', {
      call: 'enqueueSync',
      problem: `the payload schema of "${args[0].type}" is asynchronous; a synchronous transaction cannot wait for it`,
    })
  }
  return prepared
}
