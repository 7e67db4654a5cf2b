/** The commands of `chokaq`, over an injected process: tests call `runCli` in theirs. */
import { createRequire } from 'node:module'
import { Command, CommanderError } from 'commander'
import { CommandHost } from './command-host.ts'
import { registerChecklist } from './commands/checklist.ts'
import { registerConfig } from './commands/config.ts'
import { registerDeck } from './commands/deck.ts'
import { registerDlq } from './commands/dlq.ts'
import { registerDoctor } from './commands/doctor.ts'
import { registerEnqueue } from './commands/enqueue.ts'
import { registerJobs } from './commands/jobs.ts'
import { registerMigrate } from './commands/migrate.ts'
import { registerQueues } from './commands/queues.ts'
import { registerReview } from './commands/review.ts'
import { registerWork } from './commands/work.ts'
import { registerDemo } from './demo/command.ts'
import { exitCodes, exitCodeTable, type ExitCode } from './exit-codes.ts'
import type { CliIo } from './io.ts'
import { severalLines } from './terminal-text.ts'

/** Runs one command line, without the two words that started it. Never throws. */
export async function runCli(args: readonly string[], io: CliIo): Promise<ExitCode> {
  const host = new CommandHost(io)
  try {
    await buildProgram(host).parseAsync(args, { from: 'user' })
    return host.exitCode
  } catch (error) {
    // Commander has printed its message already; help and version are no errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    throw error
  }
}

export function buildProgram(host: CommandHost): Command {
  const { io } = host
  const program = new Command('chokaq')
    .description('Background jobs that never run a side effect twice without asking.')
    .version(packageVersion())
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(severalLines(text)),
    })
    .showHelpAfterError('(add --help for what is possible)')
    .addHelpText('after', `\n${exitCodeTable()}`)
  registerWork(program, host)
  registerEnqueue(program, host)
  registerJobs(program, host)
  registerDeck(program, host)
  registerDlq(program, host)
  registerReview(program, host)
  registerQueues(program, host)
  registerMigrate(program, host)
  registerDoctor(program, host)
  registerChecklist(program, host)
  registerConfig(program, host)
  registerDemo(program, host)
  return program
}

/** By name and not by path, because the file that asks is somewhere else once it is built. */
function packageVersion(): string {
  const manifest: unknown = createRequire(import.meta.url)('chokaq/package.json')
  return (manifest as { readonly version: string }).version
}
