import type { Command } from 'commander'
import { checklistRow, type ChecklistRow } from '../../core/checklist.ts'
import { formatMs } from '../../core/duration.ts'
import { withOutput, type CommandHost, type OutputFlags } from '../command-host.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import type { Output } from '../output.ts'
import { table, type Column } from '../table.ts'
import { loadWorkFile } from '../user-file.ts'
import { resolveWorkFile } from '../worker-settings.ts'

export function registerChecklist(program: Command, host: CommandHost): void {
  withOutput(program.command('checklist'))
    .description('what each handler of a file answers, and how safe that makes it')
    .argument('<file>', 'a file that exports handlers')
    .action((file: string, flags: OutputFlags) => host.run(flags, (out) => checklist(host, out, file)))
}

const columns: readonly Column<ChecklistRow>[] = [
  { title: 'TYPE', of: (row) => row.type },
  { title: 'KEY', of: keyText },
  { title: 'ENFORCED', of: (row) => row.sideEffects },
  { title: 'DUPLICATES FOR', of: (row) => duration(row.duplicateWindowMs) },
  { title: 'WHEN INTERRUPTED', of: (row) => row.whenInterrupted },
  { title: 'LEVEL', of: (row) => row.level },
  { title: 'KEY KEPT FOR', of: (row) => duration(row.markerLifeMs) },
  // Filled by what the database saw and by the verifier, once they report.
  { title: 'OBSERVED', of: () => undefined },
  { title: 'VERIFIED', of: () => undefined },
]

async function checklist({ io }: CommandHost, out: Output, file: string): Promise<ExitCode> {
  const { handlers, worker, client } = resolveWorkFile(await loadWorkFile(file, io.cwd))
  const rows = handlers.map((handler) => checklistRow(handler, worker, client))
  out.result({ types: rows.map((row) => ({ ...row, observed: null, verified: null })) }, () => table(columns, rows))
  return exitCodes.ok
}

function keyText({ key, keyScope }: ChecklistRow): string {
  if (key === 'none') return 'none'
  return key === 'payload' ? `of payload, in ${keyScope}` : 'job id'
}

function duration(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : formatMs(ms)
}
