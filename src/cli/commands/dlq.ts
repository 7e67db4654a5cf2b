import type { Command } from 'commander'
import { withActor, withDatabase, type ActorFlags, type CommandHost, type DatabaseFlags } from '../command-host.ts'
import { confirmed, type ConfirmFlags } from '../confirmation.ts'
import { selectDead, type DeadSelection, type SelectionFlags } from '../dead-selection.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { filterFrom, pageFrom, withDeadFilter, withPage, type DeadFilterFlags, type PageFlags } from '../job-filter.ts'
import { pageText } from '../job-view.ts'
import type { Output } from '../output.ts'
import { progressBar } from '../progress.ts'
import { withClient } from '../storage-location.ts'
import { counted } from '../table.ts'
import { resurrect, type ResurrectFlags } from './dlq-resurrect.ts'
import { show } from './jobs.ts'

type ListFlags = DatabaseFlags & DeadFilterFlags & PageFlags
interface PurgeFlags extends ActorFlags, SelectionFlags, ConfirmFlags {
  readonly dryRun?: boolean
}

export function registerDlq(program: Command, host: CommandHost): void {
  const dlq = program.command('dlq').description('look at dead jobs, bring them back, delete them')
  withPage(withDeadFilter(withDatabase(dlq.command('list'))))
    .description('dead jobs, newest first')
    .action((flags: ListFlags) => host.run(flags, (out) => list(host, out, flags)))
  withDatabase(dlq.command('show'))
    .description('everything that is known of a job, wherever it is')
    .argument('<id>')
    .action((id: string, flags: DatabaseFlags) => host.run(flags, (out) => show(host, out, id, flags)))
  withBulk(withActor(dlq.command('resurrect')))
    .description('bring dead jobs back: say whether it is the same operation or a new one')
    .option('--continue', 'finish the same operation: the same generation, the same provider keys')
    .option('--new-operation', 'another operation under the same key; replaces what the key left behind')
    .option('--absence <text>', 'for a new operation of a job in doubt: where you looked, and that it did not happen')
    .option('--payload <json>', 'replace the payload of one job; - reads it from standard input')
    .option('--jobs <file>', 'a file that exports the contract, where a keyed job gets another payload')
    .action((ids: readonly string[], flags: ResurrectFlags) =>
      host.run(flags, (out) => resurrect(host, out, ids, flags)),
    )
  withBulk(withActor(dlq.command('purge')))
    .description('delete dead jobs for good; jobs in doubt stay')
    .option('--dry-run', 'only count')
    .action((ids: readonly string[], flags: PurgeFlags) => host.run(flags, (out) => purge(host, out, ids, flags)))
}

function withBulk(command: Command): Command {
  return withDeadFilter(command.argument('[ids...]'))
    .option('--all', 'every dead job')
    .option('--yes', 'do it without asking')
}

function list({ io }: CommandHost, out: Output, flags: ListFlags): Promise<ExitCode> {
  return withClient(io, flags, 'existing', async (chokaq) => {
    const page = await chokaq.dlq.list({ ...filterFrom(flags), ...pageFrom(flags) })
    out.result({ jobs: page.jobs, nextCursor: page.nextCursor ?? null }, () => pageText(page, 'dlq'))
    return exitCodes.ok
  })
}

const batchSize = 200

function purge(host: CommandHost, out: Output, ids: readonly string[], flags: PurgeFlags): Promise<ExitCode> {
  const { io } = host
  return withClient(io, flags, 'existing', async (chokaq) => {
    const selection = await selectDead(chokaq, ids, flags)
    const total = selection.ids.length
    if (total === 0 || flags.dryRun === true) {
      out.result(counts(selection, 0, total), `${counted(total, 'dead job')} to delete.${asideText(selection)}`)
      return exitOf(selection)
    }
    await confirmed(io, out, flags, `${counted(total, 'dead job')} will be deleted for good.${asideText(selection)}`)
    const progress = progressBar(io, out, total)
    let purgedCount = 0
    for (let from = 0; from < total; from += batchSize) {
      const batch = selection.ids.slice(from, from + batchSize)
      purgedCount += await chokaq.dlq.purge({ ids: batch }, host.by(flags))
      progress.advance(batch.length)
    }
    progress.end()
    out.result(
      counts(selection, purgedCount, total),
      `deleted ${purgedCount} of ${counted(total, 'dead job')}.${asideText(selection)}`,
    )
    return exitOf(selection)
  })
}

function counts(selection: DeadSelection, purgedCount: number, selectedCount: number): object {
  return { purgedCount, selectedCount, inDoubtIds: selection.inDoubtIds, missingIds: selection.missingIds }
}

function asideText({ inDoubtIds, missingIds }: DeadSelection): string {
  const inDoubt = inDoubtIds.length === 0 ? '' : ` In doubt, so kept: ${inDoubtIds.length}.`
  return missingIds.length === 0 ? inDoubt : `${inDoubt} Not dead, or not known: ${missingIds.join(', ')}.`
}

function exitOf({ missingIds }: DeadSelection): ExitCode {
  return missingIds.length > 0 ? exitCodes.notFound : exitCodes.ok
}
