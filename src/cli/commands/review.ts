import type { Command } from 'commander'
import { ChokaQError } from '../../core/errors.ts'
import { withActor, withDatabase, wholeNumber, type CommandHost, type DatabaseFlags } from '../command-host.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { existingJob, storyOf } from '../job-story.ts'
import type { Output } from '../output.ts'
import { withAges, reviewListText, reviewText, reviewValue } from '../review-view.ts'
import { withClient } from '../storage-location.ts'
import { adopt, decide, type AdoptFlags, type DecisionFlags } from './review-decide.ts'

interface ListFlags extends DatabaseFlags {
  readonly type?: string
}

const biggestRevision = 1_000_000_000

export function registerReview(program: Command, host: CommandHost): void {
  const review = program.command('review').description('look at what waits for a person, and decide it')
  withDatabase(review.command('list'))
    .description('jobs that wait for a decision, newest first, at most 500')
    .option('--type <type>', 'only jobs of this type')
    .action((flags: ListFlags) => host.run(flags, (out) => list(host, out, flags)))
  withDatabase(review.command('show'))
    .description('all evidence: every recorded call, the last errors, the marker, the duplicates')
    .argument('<id>')
    .action((id: string, flags: DatabaseFlags) => host.run(flags, (out) => show(host, out, id, flags)))
  withDecision(review.command('adopt'))
    .description('it happened, and this is its result: of the effect in doubt, else of the job')
    .argument('[result]', 'the result as JSON; - reads it from standard input; left out where there is none')
    .option('--effect <name>', 'which effect it is the result of, where several are in doubt')
    .option('--item <item>', 'which call of that effect, where it has items')
    .action((id: string, result: string | undefined, flags: AdoptFlags) =>
      host.run(flags, (out) => adopt(host, out, id, result, flags)),
    )
  for (const [decision, description] of [
    ['retry', 'it did not happen: run the job again, under the same keys'],
    ['abandon', 'give the operation up; duplicates are answered already-failed'],
    ['compensate', "undo what happened, with the effects' own compensate, on a worker"],
  ] as const) {
    withDecision(review.command(decision))
      .description(description)
      .action((id: string, flags: DecisionFlags) => host.run(flags, (out) => decide(host, out, id, decision, flags)))
  }
}

function withDecision(command: Command): Command {
  return withActor(command.argument('<id>'))
    .option(
      '--revision <number>',
      'the revision that review list showed: refuses where it is another by now (default: the one just read)',
      wholeNumber(0, biggestRevision),
    )
    .option('--yes', 'do it without asking')
}

function list({ io }: CommandHost, out: Output, flags: ListFlags): Promise<ExitCode> {
  return withClient(io, flags, 'existing', async (chokaq) => {
    const reviews = await chokaq.reviews.list(flags.type === undefined ? {} : { type: flags.type })
    const aged = withAges(reviews, Date.now())
    out.result({ reviews: aged }, () => reviewListText(aged))
    return exitCodes.ok
  })
}

function show({ io }: CommandHost, out: Output, id: string, flags: DatabaseFlags): Promise<ExitCode> {
  return withClient(io, flags, 'existing', async (chokaq) => {
    const job = await existingJob(chokaq, id)
    const shown = await chokaq.reviews.show(id)
    if (shown === undefined) {
      throw new ChokaQError('CHOKAQ_NOT_POSSIBLE', { act: 'review show', id, state: `${job.state} and not in review` })
    }
    const evidence = { ...shown, story: await storyOf(chokaq, shown.job), nowMs: Date.now() }
    out.result(reviewValue(evidence), () => reviewText(evidence))
    return exitCodes.ok
  })
}
