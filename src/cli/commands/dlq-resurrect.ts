import type { Job } from '../../core/contract.ts'
import { ChokaQError, hasCode } from '../../core/errors.ts'
import type { Actor, ResurrectVerdict } from '../../core/inspector.ts'
import type { ChokaQ } from '../../engine/enqueue/client.ts'
import type { ResurrectAnswer, ResurrectOptions } from '../../engine/operators.ts'
import { CliError } from '../cli-error.ts'
import type { ActorFlags, CommandHost } from '../command-host.ts'
import { confirmed, type ConfirmFlags } from '../confirmation.ts'
import { selectDead, type SelectionFlags } from '../dead-selection.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { existingJob } from '../job-story.ts'
import { jsonArgument } from '../json-argument.ts'
import type { Output } from '../output.ts'
import { progressBar } from '../progress.ts'
import { withClient } from '../storage-location.ts'
import { counted } from '../table.ts'
import { jobOfType, loadJobs } from '../user-file.ts'

export interface ResurrectFlags extends ActorFlags, SelectionFlags, ConfirmFlags {
  readonly continue?: boolean
  readonly newOperation?: boolean
  readonly payload?: string
  readonly absence?: string
  readonly jobs?: string
}

interface Answer {
  readonly id: string
  readonly outcome: ResurrectVerdict['kind']
  readonly text: string
  readonly generation?: number
}

export async function resurrect(
  host: CommandHost,
  out: Output,
  ids: readonly string[],
  flags: ResurrectFlags,
): Promise<ExitCode> {
  const { io } = host
  const mode = modeFrom(flags)
  if (flags.payload !== undefined && ids.length !== 1) {
    throw new CliError('CHOKAQ_CLI_USAGE', '--payload replaces the payload of one job: give exactly one id.')
  }
  const payload =
    flags.payload === undefined ? {} : { payload: await jsonArgument(flags.payload, io.stdin, 'The payload') }
  const absence = flags.absence === undefined ? {} : { absence: flags.absence }
  const contracts = flags.jobs === undefined ? undefined : await loadJobs(flags.jobs, io.cwd)
  return withClient(io, flags, 'existing', async (chokaq) => {
    const chosen = ids.length > 0 ? ids : await filtered(host, out, chokaq, flags, mode)
    const answers: Answer[] = []
    const progress = progressBar(io, out, chosen.length)
    for (const id of chosen) {
      const options = { mode, ...payload, ...absence, ...(await contractFor(chokaq, id, contracts, flags)) }
      answers.push(await one(chokaq, id, options, host.by(flags)))
      progress.advance(1)
    }
    progress.end()
    out.result({ jobs: answers.map(({ text: _text, ...answer }) => answer) }, () => answersText(answers))
    return exitOf(answers)
  })
}

function modeFrom(flags: ResurrectFlags): ResurrectOptions['mode'] {
  if (flags.continue === true && flags.newOperation !== true) return 'continue'
  if (flags.newOperation === true && flags.continue !== true) return 'new-operation'
  throw new CliError(
    'CHOKAQ_CLI_USAGE',
    'Say what it is: --continue finishes the same operation, --new-operation starts another one under the same key.',
  )
}

/** A filter may find more than its author thinks of, so the number is confirmed; ids were named one by one. */
async function filtered(
  { io }: CommandHost,
  out: Output,
  chokaq: ChokaQ,
  flags: ResurrectFlags,
  mode: ResurrectOptions['mode'],
): Promise<readonly string[]> {
  const { ids, inDoubtIds } = await selectDead(chokaq, [], flags)
  const aside = inDoubtIds.length === 0 ? '' : ` In doubt, so left out: ${inDoubtIds.length}; name them by id.`
  if (ids.length === 0) out.note(`No dead job to bring back.${aside}`)
  else await confirmed(io, out, flags, `${counted(ids.length, 'dead job')} will come back (${mode}).${aside}`)
  return ids
}

async function contractFor(
  chokaq: ChokaQ,
  id: string,
  contracts: ReadonlyMap<string, Job> | undefined,
  flags: ResurrectFlags,
): Promise<{ readonly job?: Job }> {
  if (contracts === undefined || flags.payload === undefined) return {}
  return { job: jobOfType(contracts, (await existingJob(chokaq, id)).type) }
}

async function one(chokaq: ChokaQ, id: string, options: ResurrectOptions, by: Actor): Promise<Answer> {
  const verdict = await resurrected(chokaq, id, options, by)
  if (verdict instanceof ChokaQError) return { id, outcome: 'not-absent', text: verdict.message }
  const text = verdictText(verdict)
  return {
    id,
    outcome: verdict.kind,
    text,
    ...(verdict.kind === 'resurrected' ? { generation: verdict.generation } : {}),
  }
}

/** A doubt that stands in the way is the answer of this job, and no reason to leave the others. */
async function resurrected(
  chokaq: ChokaQ,
  id: string,
  options: ResurrectOptions,
  by: Actor,
): Promise<ResurrectAnswer | ChokaQError> {
  try {
    return await chokaq.dlq.resurrect(id, options, by)
  } catch (error) {
    if (hasCode(error, 'CHOKAQ_ABSENCE_UNPROVEN')) return error
    throw error
  }
}

function verdictText(verdict: ResurrectAnswer): string {
  switch (verdict.kind) {
    case 'resurrected':
      return `resurrected, generation ${verdict.generation}`
    case 'not-found':
      return 'no dead job has this id'
    case 'changed':
      return `somebody else acted on it (revision ${verdict.revision}); look at it again`
    case 'active':
      return `its key is held by active job ${verdict.jobId}`
    case 'marked':
      return verdict.state === 'in_doubt'
        ? `job ${verdict.jobId} of the same key is in doubt; decide that first: chokaq review`
        : `its key was left ${verdict.state} by job ${verdict.jobId}; only --new-operation replaces that`
    case 'in-doubt':
      return 'nobody knows whether its side effects happened; find out, then decide: chokaq review'
    case 'too-old':
      return 'it is too old to continue safely; find out what happened, then use --new-operation'
    case 'key-changed':
      return 'the new payload has another key, which is another operation: use --new-operation'
  }
}

function answersText(answers: readonly Answer[]): string {
  const done = answers.filter(({ outcome }) => outcome === 'resurrected').length
  const shown = answers.length <= 20 ? answers : answers.filter(({ outcome }) => outcome !== 'resurrected')
  return [...shown.map(({ id, text }) => `${id}  ${text}`), `resurrected ${done} of ${answers.length}`].join('\n')
}

/** One that was refused says more than one that was not found. */
function exitOf(answers: readonly Answer[]): ExitCode {
  const outcomes = new Set(answers.map(({ outcome }) => outcome))
  outcomes.delete('resurrected')
  const missing = outcomes.delete('not-found')
  if (outcomes.size > 0) return exitCodes.refused
  return missing ? exitCodes.notFound : exitCodes.ok
}
