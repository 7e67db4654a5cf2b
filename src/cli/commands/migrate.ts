import type { Command } from 'commander'
import type { MigrationPlan } from '../../storage/migration.ts'
import { withDatabase, type CommandHost, type DatabaseFlags } from '../command-host.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import type { Output } from '../output.ts'
import { planFor, withClient } from '../storage-location.ts'

interface Flags extends DatabaseFlags {
  readonly plan?: boolean
}

export function registerMigrate(program: Command, host: CommandHost): void {
  withDatabase(program.command('migrate'))
    .description('make or upgrade the tables; with --plan only print the SQL')
    .option('--plan', 'print the SQL that would run, and run nothing')
    .action((flags: Flags) => host.run(flags, (out) => migrate(host, out, flags)))
}

async function migrate({ io }: CommandHost, out: Output, flags: Flags): Promise<ExitCode> {
  const plan = await planFor(io, flags)
  if (flags.plan === true) {
    if (out.json) out.result(plan, '')
    else if (plan.sql === '') out.note(nothingToDo(plan))
    else out.line(plan.sql)
    return exitCodes.ok
  }
  // Even where nothing is pending: it says whether the tables can be used.
  await withClient(io, flags, 'may-be-new', async () => undefined)
  out.result({ ...plan, sql: undefined }, plan.pending.length === 0 ? nothingToDo(plan) : done(plan))
  return exitCodes.ok
}

function nothingToDo({ location, knownVersion }: MigrationPlan): string {
  return `nothing to do: ${location} has version ${knownVersion}, the current one`
}

function done({ location, foundVersion, knownVersion, pending }: MigrationPlan): string {
  const names = pending.map(({ name }) => name).join(', ')
  const from = foundVersion === 0 ? 'made' : `upgraded from version ${foundVersion}`
  return `${from}: ${location} has version ${knownVersion} now (${names})`
}
