import { confirm } from '@clack/prompts'
import { CliError } from './cli-error.ts'
import type { CliIo } from './io.ts'
import type { Output } from './output.ts'

export interface ConfirmFlags {
  readonly yes?: boolean
}

/**
 * Returns where the person agreed. Nobody is asked with --yes; where nobody can be asked, it is refused.
 *
 * @throws CHOKAQ_CLI_CONFIRM
 */
export async function confirmed(io: CliIo, out: Output, flags: ConfirmFlags, what: string): Promise<void> {
  if (flags.yes === true) return
  if (out.json || io.stdin.isTTY !== true || io.stderr.isTTY !== true) {
    throw new CliError('CHOKAQ_CLI_CONFIRM', `${what} Nothing was done: repeat with --yes to do it.`)
  }
  const answer = await confirm({ message: what, initialValue: false, input: io.stdin, output: io.stderr })
  if (answer !== true) throw new CliError('CHOKAQ_CLI_CONFIRM', 'Nothing was done.')
}
