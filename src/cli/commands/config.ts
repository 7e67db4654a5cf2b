import type { Command } from 'commander'
import { checkBoot } from '../../core/boot-check.ts'
import type { WindowFinding } from '../../core/windows.ts'
import { withOutput, type CommandHost, type OutputFlags } from '../command-host.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import type { Output } from '../output.ts'
import { counted } from '../table.ts'
import { loadWorkFile } from '../user-file.ts'
import { resolveWorkFile } from '../worker-settings.ts'

export function registerConfig(program: Command, host: CommandHost): void {
  const config = program.command('config').description('check settings before they are deployed')
  withOutput(config.command('check'))
    .description('what a worker would refuse at its start, and what it would warn of')
    .argument('<file>', 'a file that exports handlers')
    .action((file: string, flags: OutputFlags) => host.run(flags, (out) => check(host, out, file)))
}

async function check({ io }: CommandHost, out: Output, file: string): Promise<ExitCode> {
  const { handlers, worker, client } = resolveWorkFile(await loadWorkFile(file, io.cwd))
  const { refusals, warnings } = checkBoot(handlers, worker, client)
  out.result({ refusals, warnings }, () =>
    [
      ...findingLines('error', refusals),
      ...findingLines('warning', warnings),
      `${counted(handlers.length, 'handler')}: ${counted(refusals.length, 'error')}, ${counted(warnings.length, 'warning')}`,
    ].join('\n'),
  )
  return refusals.length > 0 ? exitCodes.failure : exitCodes.ok
}

function findingLines(kind: string, findings: readonly WindowFinding[]): readonly string[] {
  return findings.map(({ rule, text }) => `${kind} ${rule}: ${text}`)
}
