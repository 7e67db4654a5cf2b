import type { Command } from 'commander'
import { InvalidArgumentError } from 'commander'
import { defineJob, type Job } from '../../core/contract.ts'
import { durationMs, type Duration } from '../../core/duration.ts'
import { ChokaQError } from '../../core/errors.ts'
import type { ChokaQ } from '../../engine/enqueue/client.ts'
import type { EnqueueResult } from '../../engine/enqueue/answer.ts'
import type { EnqueueOptions } from '../../engine/enqueue/enqueue-options.ts'
import { collected, wholeNumber, withDatabase, type CommandHost, type DatabaseFlags } from '../command-host.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { jsonArgument } from '../json-argument.ts'
import { schemaFrom } from '../../deck/json-schema.ts'
import type { Output } from '../output.ts'
import { withClient } from '../storage-location.ts'
import { jsonLine } from '../terminal-text.ts'
import { jobOfType, loadJobs } from '../user-file.ts'

interface Flags extends DatabaseFlags {
  readonly jobs?: string
  readonly delay?: Duration
  readonly priority?: number
  readonly queue?: string
  readonly tag?: readonly string[]
  readonly id?: string
  readonly tenant?: string
}

export function registerEnqueue(program: Command, host: CommandHost): void {
  withDatabase(program.command('enqueue'))
    .description('store one job; its payload is checked against the contract, or what a worker registered of it')
    .argument('<type>', "the type of the job, such as 'payment.capture.v1'")
    .argument('<json>', 'the payload as JSON; - reads it from standard input')
    .option('--jobs <file>', 'a file that exports the contract (TypeScript or JavaScript)')
    .option('--delay <duration>', "wait before the first start, such as '10m'", duration)
    .option('--priority <number>', 'a higher number runs first', wholeNumber(-1000, 1000))
    .option('--queue <name>', 'another queue than that of the contract')
    .option('--tag <text>', 'a tag; may be repeated', collected)
    .option('--id <uuid>', 'an id of your own: repeating the command with it is safe')
    .option('--tenant <name>', 'scopes the key')
    .action((type: string, json: string, flags: Flags) =>
      host.run(flags, (out) => enqueue(host, out, type, json, flags)),
    )
}

function duration(text: string): Duration {
  try {
    durationMs(text as Duration, 'delay')
    return text as Duration
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : String(error))
  }
}

async function enqueue(host: CommandHost, out: Output, type: string, json: string, flags: Flags): Promise<ExitCode> {
  const { io } = host
  const payload = await jsonArgument(json, io.stdin, 'The payload')
  const fromFile = flags.jobs === undefined ? undefined : jobOfType(await loadJobs(flags.jobs, io.cwd), type)
  return withClient(io, flags, fromFile === undefined ? 'existing' : 'may-be-new', async (chokaq) => {
    const job = fromFile ?? (await storedJob(chokaq, type, out))
    const result = await chokaq.enqueue(job, payload, optionsFrom(flags))
    out.result(result, () => answerText(result))
    return exitCodes.ok
  })
}

function optionsFrom(flags: Flags): EnqueueOptions {
  const { delay, priority, queue, tag, id, tenant } = flags
  return {
    ...(delay === undefined ? {} : { delay }),
    ...(priority === undefined ? {} : { priority }),
    ...(queue === undefined ? {} : { queue }),
    ...(tag === undefined ? {} : { tags: tag }),
    ...(id === undefined ? {} : { id }),
    ...(tenant === undefined ? {} : { tenant }),
  }
}

/**
 * A stand-in for a contract that is not at hand, from what a worker registered. It has no key: a worker computes it,
 * which is safe only where the contract says so.
 */
async function storedJob(chokaq: ChokaQ, type: string, out: Output): Promise<Job> {
  const types = await chokaq.insight.jobTypes()
  const row = types.find((each) => each.type === type)
  if (row === undefined) throw new ChokaQError('CHOKAQ_UNKNOWN_TYPE', { type, known: types.map((each) => each.type) })
  if (row.keyed && !row.allowRaw) throw new ChokaQError('CHOKAQ_RAW_REFUSED', { type })
  const cannotCheck = (why: string): void => {
    out.warn(`the payload cannot be checked here (${why}); the worker checks it`)
  }
  return defineJob({ type: row.type, queue: row.queue, payload: schemaFrom(row.payloadSchema, cannotCheck) })
}

function answerText(result: EnqueueResult<unknown>): string {
  switch (result.outcome) {
    case 'enqueued':
      return `enqueued ${result.id}`
    case 'already-active':
      return `already active: job ${result.id} has this key`
    case 'already-in-review':
      return `already in review: job ${result.id} has this key and waits for a decision`
    case 'already-compensated':
      return `already compensated: job ${result.id} had this key`
    case 'already-completed':
      return `already completed by job ${result.id}: ${jsonLine(result.result)}`
    case 'already-failed':
      return `already failed as job ${result.id}: ${result.error.message}`
  }
}
