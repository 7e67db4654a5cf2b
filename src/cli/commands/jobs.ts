import type { Command } from 'commander'
import { ChokaQError } from '../../core/errors.ts'
import { archiveOutcomes, hotStates, type ArchiveOutcome, type HotState, type Pillar } from '../../core/job.ts'
import {
  oneOf,
  withActor,
  withDatabase,
  type ActorFlags,
  type CommandHost,
  type DatabaseFlags,
} from '../command-host.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { filterFrom, pageFrom, withFilter, withPage, type FilterFlags, type PageFlags } from '../job-filter.ts'
import { existingJob, storyOf } from '../job-story.ts'
import { pageText, storyText, storyValue } from '../job-view.ts'
import type { Output } from '../output.ts'
import { withClient } from '../storage-location.ts'

const pillars: readonly Pillar[] = ['hot', 'archive', 'dlq']
const states = [...hotStates, ...archiveOutcomes, 'dead'] as const
type State = (typeof states)[number]

interface ListFlags extends DatabaseFlags, FilterFlags, PageFlags {
  readonly state?: State
  readonly pillar?: Pillar
}

export function registerJobs(program: Command, host: CommandHost): void {
  const jobs = program.command('jobs').description('look at jobs, cancel them, start them now')
  withPage(withFilter(withDatabase(jobs.command('list'))))
    .description('jobs, newest first')
    .option('--state <state>', `only jobs in this state: ${states.join(', ')}`, oneOf(states))
    .option(
      '--pillar <pillar>',
      'hot (active), archive (finished) or dlq (dead) (default: where the state is, else hot)',
      oneOf(pillars),
    )
    .action((flags: ListFlags) => host.run(flags, (out) => list(host, out, flags)))
  withDatabase(jobs.command('show'))
    .description('everything that is known of a job, wherever it is')
    .argument('<id>')
    .action((id: string, flags: DatabaseFlags) => host.run(flags, (out) => show(host, out, id, flags)))
  withActor(jobs.command('cancel'))
    .description('cancel a waiting job at once; ask a running one to stop')
    .argument('<id>')
    .action((id: string, flags: ActorFlags) => host.run(flags, (out) => cancel(host, out, id, flags)))
  withActor(jobs.command('retry'))
    .description('start a scheduled job now: one that waits for its next attempt, or was delayed')
    .argument('<id>')
    .action((id: string, flags: ActorFlags) => host.run(flags, (out) => retry(host, out, id, flags)))
}

function list({ io }: CommandHost, out: Output, flags: ListFlags): Promise<ExitCode> {
  const { state } = flags
  const pillar = flags.pillar ?? pillarOf(state)
  const stateFilter = state === undefined || state === 'dead' ? {} : { state }
  return withClient(io, flags, 'existing', async (chokaq) => {
    const page = await chokaq.jobs.list(pillar, { ...filterFrom(flags), ...stateFilter, ...pageFrom(flags) })
    out.result({ jobs: page.jobs, nextCursor: page.nextCursor ?? null }, () => pageText(page, pillar))
    return exitCodes.ok
  })
}

function pillarOf(state: State | undefined): Pillar {
  if (state === 'dead') return 'dlq'
  return state !== undefined && isOutcome(state) ? 'archive' : 'hot'
}

function isOutcome(state: HotState | ArchiveOutcome): state is ArchiveOutcome {
  return (archiveOutcomes as readonly string[]).includes(state)
}

export function show({ io }: CommandHost, out: Output, id: string, flags: DatabaseFlags): Promise<ExitCode> {
  return withClient(io, flags, 'existing', async (chokaq) => {
    const story = await storyOf(chokaq, await existingJob(chokaq, id))
    out.result(storyValue(story), () => storyText(story))
    return exitCodes.ok
  })
}

function cancel(host: CommandHost, out: Output, id: string, flags: ActorFlags): Promise<ExitCode> {
  return withClient(host.io, flags, 'existing', async (chokaq) => {
    const verdict = await chokaq.jobs.cancel(id, host.by(flags))
    switch (verdict.kind) {
      case 'not-found':
        throw new ChokaQError('CHOKAQ_JOB_NOT_FOUND', { id })
      case 'finished':
        throw new ChokaQError('CHOKAQ_NOT_POSSIBLE', { act: 'cancel', id, state: verdict.state })
      case 'cancelled':
        out.result({ id, outcome: 'cancelled' }, `cancelled ${id}`)
        return exitCodes.ok
      case 'requested':
        out.result({ id, outcome: 'requested' }, `asked the worker of ${id} to stop it; see: chokaq jobs show ${id}`)
        return exitCodes.ok
    }
  })
}

function retry(host: CommandHost, out: Output, id: string, flags: ActorFlags): Promise<ExitCode> {
  return withClient(host.io, flags, 'existing', async (chokaq) => {
    if (!(await chokaq.jobs.retryNow(id, host.by(flags)))) {
      const { state } = await existingJob(chokaq, id)
      const hint = state === 'dead' ? 'dead: use chokaq dlq resurrect' : state
      throw new ChokaQError('CHOKAQ_NOT_POSSIBLE', { act: 'retry', id, state: hint })
    }
    out.result({ id, outcome: 'pending' }, `${id} is due now`)
    return exitCodes.ok
  })
}
