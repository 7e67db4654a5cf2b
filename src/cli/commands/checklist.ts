import type { Command } from 'commander'
import {
  checklistRow,
  declaredAnswers,
  lowerLevel,
  observedLevel,
  observedText,
  type ChecklistRow,
} from '../../core/checklist.ts'
import { formatMs } from '../../core/duration.ts'
import type { ObservedEffect } from '../../core/inspector.ts'
import { CliError } from '../cli-error.ts'
import { withDatabase, type CommandHost, type DatabaseFlags } from '../command-host.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import type { Output } from '../output.ts'
import { withClient } from '../storage-location.ts'
import { table, type Column } from '../table.ts'
import { loadWorkFile } from '../user-file.ts'
import { resolveWorkFile } from '../worker-settings.ts'

export function registerChecklist(program: Command, host: CommandHost): void {
  withDatabase(program.command('checklist'))
    .description('what each handler of a file answers, what its database saw of it, and how safe that makes it')
    .argument('<file>', 'a file that exports handlers')
    .action((file: string, flags: DatabaseFlags) => host.run(flags, (out) => checklist(host, out, file, flags)))
}

interface Row extends ChecklistRow {
  /** What the answers alone would give. */
  readonly declared: ChecklistRow['level']
  /** null: nothing was seen, or there is no database to ask. */
  readonly observed: readonly ObservedEffect[] | null
  /** What a crash verifier recorded; none does yet. */
  readonly verified: null
}

const columns: readonly Column<Row>[] = [
  { title: 'TYPE', of: (row) => row.type },
  { title: 'KEY', of: keyText },
  { title: 'ENFORCED', of: (row) => row.sideEffects },
  { title: 'DUPLICATES FOR', of: (row) => duration(row.duplicateWindowMs) },
  { title: 'WHEN INTERRUPTED', of: (row) => row.whenInterrupted },
  { title: 'LEVEL', of: levelText },
  { title: 'KEY KEPT FOR', of: (row) => duration(row.markerLifeMs) },
  { title: 'OBSERVED', of: (row) => observedText(row.observed ?? []) ?? 'not observed' },
  { title: 'VERIFIED', of: () => 'not verified' },
]

async function checklist({ io }: CommandHost, out: Output, file: string, flags: DatabaseFlags): Promise<ExitCode> {
  const { handlers, worker, client } = resolveWorkFile(await loadWorkFile(file, io.cwd))
  const observed = await observedIn(io, flags)
  const rows = handlers.map((handler): Row => {
    const row = checklistRow(handler, worker, client)
    const seen = observed.filter(({ type }) => type === row.type)
    const level = lowerLevel(row.level, observedLevel(declaredAnswers(handler), seen))
    return { ...row, declared: row.level, level, observed: seen.length > 0 ? seen : null, verified: null }
  })
  out.result({ types: rows }, () => table(columns, rows))
  return exitCodes.ok
}

/** The answers stand in the file: without a database that was named, there is only less to say. */
async function observedIn(io: CommandHost['io'], flags: DatabaseFlags): Promise<readonly ObservedEffect[]> {
  try {
    return await withClient(io, flags, 'existing', (chokaq) => chokaq.insight.observedEffects())
  } catch (error) {
    if (flags.db === undefined && error instanceof CliError && error.code === 'CHOKAQ_CLI_NO_DATABASE') return []
    throw error
  }
}

function keyText({ key, keyScope }: Row): string {
  if (key === 'none') return 'none'
  return key === 'payload' ? `of payload, in ${keyScope}` : 'job id'
}

function levelText({ level, declared }: Row): string {
  return level === declared ? level : `${level} (declared: ${declared})`
}

function duration(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : formatMs(ms)
}
