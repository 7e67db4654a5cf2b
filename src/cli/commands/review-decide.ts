/** The decisions. What was read last is what is decided about: its revision goes with the decision. */
import { ChokaQError, hasCode } from '../../core/errors.ts'
import type { Decision } from '../../core/inspector.ts'
import type { ChokaQ } from '../../engine/enqueue/client.ts'
import type { AdoptOptions, Operator, Review, ReviewOutcome } from '../../engine/reviews.ts'
import { CliError } from '../cli-error.ts'
import type { ActorFlags, CommandHost } from '../command-host.ts'
import { confirmed, type ConfirmFlags } from '../confirmation.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { existingJob } from '../job-story.ts'
import { jsonArgument } from '../json-argument.ts'
import type { Output } from '../output.ts'
import { withClient } from '../storage-location.ts'

export interface DecisionFlags extends ActorFlags, ConfirmFlags {
  readonly revision?: number
}

export interface AdoptFlags extends DecisionFlags {
  readonly effect?: string
  readonly item?: string
}

type Act = (chokaq: ChokaQ, by: Operator) => Promise<ReviewOutcome>

interface Asked {
  readonly decision: Decision
  /** What is adopted, as the question shows it. */
  readonly what: string
  readonly act: Act
}

export async function adopt(
  host: CommandHost,
  out: Output,
  id: string,
  result: string | undefined,
  flags: AdoptFlags,
): Promise<ExitCode> {
  const value = result === undefined ? undefined : await jsonArgument(result, host.io.stdin, 'The result')
  const options = adoptOptions(flags)
  const given = value === undefined ? 'no result' : `the result ${JSON.stringify(value)}`
  const act: Act = (chokaq, by) => chokaq.reviews.adopt(id, value, by, options)
  return ask(host, out, id, { decision: 'adopt', what: given, act }, flags)
}

export function decide(
  host: CommandHost,
  out: Output,
  id: string,
  decision: Exclude<Decision, 'adopt'>,
  flags: DecisionFlags,
): Promise<ExitCode> {
  const act: Act = (chokaq, by) => chokaq.reviews[decision](id, by)
  return ask(host, out, id, { decision, what: '', act }, flags)
}

function adoptOptions({ effect, item }: AdoptFlags): AdoptOptions {
  if (effect === undefined) {
    if (item === undefined) return {}
    throw new CliError('CHOKAQ_CLI_USAGE', '--item says which call of an effect: name the effect with --effect.')
  }
  return { effect: { name: effect, ...(item === undefined ? {} : { item }) } }
}

function ask(host: CommandHost, out: Output, id: string, asked: Asked, flags: DecisionFlags): Promise<ExitCode> {
  return withClient(host.io, flags, 'existing', async (chokaq) => {
    const shown = await chokaq.reviews.show(id)
    if (shown === undefined) return notInReview(host, out, chokaq, id, asked, flags)
    const revision = flags.revision ?? shown.review.revision
    await confirmed(host.io, out, flags, question(shown.review, asked, revision))
    const outcome = await asked.act(chokaq, { ...host.by(flags), revision })
    return report(out, id, asked.decision, revision, outcome)
  })
}

/** Who came first stands in the audit log; asking the storage again is what reads it. Nothing can be decided there. */
async function notInReview(
  host: CommandHost,
  out: Output,
  chokaq: ChokaQ,
  id: string,
  { decision, act }: Asked,
  flags: DecisionFlags,
): Promise<ExitCode> {
  const { state } = await existingJob(chokaq, id)
  const revision = flags.revision ?? 0
  try {
    return report(out, id, decision, revision, await act(chokaq, { ...host.by(flags), revision }))
  } catch (error) {
    if (!hasCode(error, 'CHOKAQ_JOB_NOT_FOUND')) throw error
    throw new ChokaQError('CHOKAQ_NOT_POSSIBLE', { act: decision, id, state: `${state} and not in review` })
  }
}

function question({ id, type, key, effect, item }: Review, { decision, what }: Asked, revision: number): string {
  const about = effect === undefined ? '' : `, effect ${effect}${item === undefined ? '' : ` (${item})`} in doubt`
  const head = `${decision} ${id}: ${type}${key === '' ? '' : ` of ${key}`}${about}, revision ${revision}.`
  return `${head} ${whatFollows(decision, what, effect !== undefined)}`
}

function whatFollows(decision: Decision, what: string, isEffect: boolean): string {
  switch (decision) {
    case 'adopt':
      return isEffect
        ? `It happened with ${what}, and the handler will go on.`
        : `The job will be complete with ${what}.`
    case 'retry':
      return 'It did not happen, and the job will run again under the same keys.'
    case 'abandon':
      return 'The operation will be given up, and duplicates of it will be answered already-failed.'
    case 'compensate':
      return 'A worker will undo what happened, and the operation will be over.'
  }
}

function report(out: Output, id: string, decision: Decision, revision: number, outcome: ReviewOutcome): ExitCode {
  if (outcome.outcome === 'resolved') {
    out.result({ id, decision, revision, ...outcome }, `${decision}: ${id} at revision ${revision}`)
    return exitCodes.ok
  }
  const { by, as } = outcome
  out.result({ id, decision, ...outcome }, `nothing was done: ${by} has decided ${id} already (${as})`)
  return exitCodes.refused
}
