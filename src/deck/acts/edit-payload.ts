/** An edited payload: checked against what the worker stored of its schema, with what is redacted put back. */
import { contractOf, type Job } from '../../core/contract.ts'
import { hasCode } from '../../core/errors.ts'
import type { JobRecord } from '../../core/job.ts'
import type { ResurrectOptions } from '../../engine/operators.ts'
import type { Context } from '../context.ts'
import { schemaFrom } from '../json-schema.ts'
import { DeckRefusal, jobNotFound } from '../problem.ts'
import { optionalText, type Body } from '../request.ts'
import { restoreRedacted } from '../redact.ts'
import type { PayloadCheck } from '../wire-jobs.ts'

const maxPayloadLength = 2_000_000

/** null where the payload of a job may be edited, else why not. */
export function editObstacle(job: JobRecord, jobs: ReadonlyMap<string, Job>): string | null {
  if (job.payload === null) return 'Its payload was not kept.'
  if (job.keyHash === null || jobs.has(job.type)) return null
  return 'Its type is keyed: the Deck needs its contract to compute the new key (jobs of createDeck, chokaq deck --jobs).'
}

export async function checkPayload(context: Context, id: string, body: Body): Promise<PayloadCheck> {
  const job = await context.reads.get(id)
  if (job === undefined) throw jobNotFound()
  const read = readEdited(context, job, optionalText(body, 'payload', maxPayloadLength) ?? '')
  if ('problem' in read) return { ok: false, errors: [{ path: '', message: read.problem }] }
  const errors = await schemaErrors(context, job, read.value)
  return { ok: errors.length === 0, errors }
}

/** For resurrect. @throws DeckRefusal */
export async function editedPayload(
  context: Context,
  job: JobRecord,
  text: string,
): Promise<Pick<ResurrectOptions, 'payload' | 'job'>> {
  const obstacle = editObstacle(job, context.config.jobs)
  if (obstacle !== null) throw new DeckRefusal(409, 'contract-needed', obstacle)
  const read = readEdited(context, job, text)
  if ('problem' in read) throw new DeckRefusal(422, 'payload-invalid', read.problem)
  const [first] = await schemaErrors(context, job, read.value)
  if (first !== undefined) {
    throw new DeckRefusal(422, 'payload-invalid', `${first.path === '' ? 'The payload' : first.path}: ${first.message}`)
  }
  const contract = context.config.jobs.get(job.type)
  return { payload: read.value, ...(contract === undefined ? {} : { job: contract }) }
}

/** What the storage or the contract refuse of an edited payload, for the person who edited it. */
export function editRefusal(error: unknown): unknown {
  if (hasCode(error, 'CHOKAQ_PAYLOAD_INVALID')) {
    return new DeckRefusal(
      422,
      'payload-invalid',
      `The contract refuses it: ${error.details.issues.join('; ').slice(0, 500)}`,
    )
  }
  if (hasCode(error, 'CHOKAQ_EMPTY_KEY')) return new DeckRefusal(422, 'payload-invalid', 'Its key would be empty.')
  if (hasCode(error, 'CHOKAQ_NOT_JSON'))
    return new DeckRefusal(422, 'payload-invalid', 'It holds what JSON cannot store.')
  return error
}

type Edited = { readonly value: unknown } | { readonly problem: string }

function readEdited({ config }: Context, job: JobRecord, text: string): Edited {
  let edited: unknown
  try {
    edited = JSON.parse(text)
  } catch (error) {
    return { problem: error instanceof SyntaxError ? `No JSON: ${error.message.slice(0, 200)}` : 'No JSON.' }
  }
  if (config.redaction.isEmpty || job.payload === null) return { value: edited }
  const shown: unknown = JSON.parse(config.redaction.json(job.payload, { type: job.type, what: 'payload' }).text)
  const restored = restoreRedacted(edited, shown, JSON.parse(job.payload))
  return (
    restored ?? {
      problem: 'A [redacted] value stands where none was: put it back to its place, or write the value itself.',
    }
  )
}

async function schemaErrors(context: Context, job: JobRecord, value: unknown): Promise<PayloadCheck['errors']> {
  const contract = context.config.jobs.get(job.type)
  const stored = (await context.reads.jobTypes()).find(({ type }) => type === job.type)?.payloadSchema ?? null
  const schema = contract === undefined ? schemaFrom(stored, () => undefined) : contractOf(contract).payload
  const { issues = [] } = await schema['~standard'].validate(value)
  return issues.map(({ message, path = [] }) => ({ path: pathText(path), message: message.slice(0, 500) }))
}

/** ['items', 0, 'name'] → 'items[0].name' */
function pathText(path: readonly unknown[]): string {
  return path
    .map((step) => (typeof step === 'object' && step !== null && 'key' in step ? step.key : step))
    .map((step, n) => (typeof step === 'number' ? `[${step}]` : `${n === 0 ? '' : '.'}${String(step)}`))
    .join('')
}
