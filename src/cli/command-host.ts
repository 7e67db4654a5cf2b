/** What every command needs: its options, where it prints, and how its exit code gets out. */
import { InvalidArgumentError, type Command } from 'commander'
import type { Actor } from '../core/inspector.ts'
import { exitCodes, type ExitCode } from './exit-codes.ts'
import type { CliIo } from './io.ts'
import { Output } from './output.ts'
import { databaseVariable, defaultLocation } from './storage-location.ts'

export interface OutputFlags {
  readonly json?: boolean
  readonly verbose?: boolean
}

export interface DatabaseFlags extends OutputFlags {
  readonly db?: string
  /** Of PostgreSQL. */
  readonly schema?: string
}

export interface ActorFlags extends DatabaseFlags {
  readonly actor?: string
  readonly note?: string
}

export class CommandHost {
  readonly io: CliIo
  exitCode: ExitCode = exitCodes.ok

  constructor(io: CliIo) {
    this.io = io
  }

  /** Runs an action; an error is printed here and decides the exit code. */
  async run(flags: OutputFlags, action: (out: Output) => Promise<ExitCode>): Promise<void> {
    const out = new Output(this.io, flags)
    try {
      this.exitCode = await action(out)
    } catch (error) {
      this.exitCode = out.error(error)
    }
  }

  by(flags: ActorFlags): Actor {
    return { actor: flags.actor ?? this.io.userName, note: flags.note ?? '' }
  }
}

export function withOutput(command: Command): Command {
  return command
    .option('--json', 'print JSON for machines, one text a line')
    .option('--verbose', 'print more, and the stack of an error')
}

export function withDatabase(command: Command): Command {
  return withOutput(command)
    .option(
      '--db <location>',
      `the database: a path, sqlite:path or postgres://host/database (default: $${databaseVariable}, else ${defaultLocation})`,
    )
    .option('--schema <name>', 'the schema that holds the tables (PostgreSQL; default: chokaq)')
}

/** For what stands in the audit log afterwards. */
export function withActor(command: Command): Command {
  return withDatabase(command)
    .option('--actor <name>', 'who acts, for the audit log (default: the user of the operating system)')
    .option('--note <text>', 'why, for the audit log')
}

/** A whole number of an option; commander turns the error into a usage message. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^-?\d{1,15}$/.test(text) ? Number(text) : NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}.`)
  }
}

export function oneOf<const T extends string>(known: readonly T[]): (text: string) => T {
  return (text) => {
    const found = known.find((each) => each === text)
    if (found !== undefined) return found
    throw new InvalidArgumentError(`Give one of: ${known.join(', ')}.`)
  }
}

/** For an option that may be repeated. */
export function collected(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text]
}

export function commaSeparated(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  if (names.every((name) => name !== '')) return names
  throw new InvalidArgumentError('Give names with commas between them.')
}
