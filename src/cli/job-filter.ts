/** The filters that `jobs list` and the `dlq` commands share. */
import type { Command } from 'commander'
import type { JobFilter } from '../core/inspector.ts'
import { deadReasons, type DeadReason } from '../core/job.ts'
import { oneOf, wholeNumber } from './command-host.ts'

export interface FilterFlags {
  readonly type?: string
  readonly queue?: string
  readonly key?: string
  readonly tag?: string
}

export interface DeadFilterFlags extends FilterFlags {
  readonly reason?: DeadReason
}

export interface PageFlags {
  readonly limit?: number
  readonly cursor?: string
}

export function withFilter(command: Command): Command {
  return command
    .option('--type <type>', 'only jobs of this type')
    .option('--queue <name>', 'only jobs of this queue')
    .option('--key <text>', 'only jobs whose key begins with this, or has this hash (64 hexadecimal digits)')
    .option('--tag <text>', 'only jobs with this tag')
}

export function withDeadFilter(command: Command): Command {
  return withFilter(command).option(
    '--reason <reason>',
    `only dead jobs with this reason: ${deadReasons.join(', ')}`,
    oneOf(deadReasons),
  )
}

export function withPage(command: Command): Command {
  return command
    .option('--limit <number>', 'how many, 1 to 500 (default: 50)', wholeNumber(1, 500))
    .option('--cursor <text>', 'go on where the page before ended')
}

export function filterFrom(flags: DeadFilterFlags): JobFilter {
  const { type, queue, key, tag, reason } = flags
  return {
    ...(type === undefined ? {} : { type }),
    ...(queue === undefined ? {} : { queue }),
    ...(key === undefined ? {} : /^[0-9a-f]{64}$/.test(key) ? { keyHash: key } : { keyPrefix: key }),
    ...(tag === undefined ? {} : { tag }),
    ...(reason === undefined ? {} : { reason }),
  }
}

export function pageFrom(flags: PageFlags): { readonly limit?: number; readonly cursor?: string } {
  const { limit, cursor } = flags
  return { ...(limit === undefined ? {} : { limit }), ...(cursor === undefined ? {} : { cursor }) }
}
