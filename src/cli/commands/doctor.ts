import type { Command } from 'commander'
import { formatMs } from '../../core/duration.ts'
import type { QueueRow } from '../../core/inspector.ts'
import { withDatabase, type CommandHost, type DatabaseFlags } from '../command-host.ts'
import { readFacts, type DoctorFacts } from '../doctor/facts.ts'
import { examine, type Finding } from '../doctor/findings.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import type { Output } from '../output.ts'
import { withClient } from '../storage-location.ts'
import { counted, table, type Column } from '../table.ts'

export function registerDoctor(program: Command, host: CommandHost): void {
  withDatabase(program.command('doctor'))
    .description('what keeps jobs from being done, and what is worth a look')
    .action((flags: DatabaseFlags) => host.run(flags, (out) => doctor(host, out, flags)))
}

async function doctor({ io }: CommandHost, out: Output, flags: DatabaseFlags): Promise<ExitCode> {
  return withClient(io, flags, 'existing', async (chokaq) => {
    const facts = await readFacts(chokaq, () => Date.now())
    const findings = examine(facts)
    const queues = facts.queues.map((queue) => ({ ...queue, servedBy: servedBy(facts, queue) }))
    const workers = { live: facts.liveWorkers.length, silent: facts.silentWorkers.length }
    out.result({ findings, queues, workers }, () => report(findings, queues, workers.live))
    return findings.some(({ severity }) => severity === 'error') ? exitCodes.failure : exitCodes.ok
  })
}

type ServedQueue = QueueRow & { readonly servedBy: number }

const columns: readonly Column<ServedQueue>[] = [
  { title: 'QUEUE', of: (row) => row.name },
  { title: 'WORKERS', of: (row) => row.servedBy, align: 'right' },
  { title: 'PENDING', of: (row) => row.pendingCount, align: 'right' },
  { title: 'OLDEST', of: (row) => row.lagMs && formatMs(row.lagMs), align: 'right' },
  { title: 'RUNNING', of: (row) => row.processingCount, align: 'right' },
  { title: 'DEAD', of: (row) => row.deadCount, align: 'right' },
  { title: 'PAUSED', of: (row) => (row.paused ? 'yes' : undefined) },
]

function report(findings: readonly Finding[], queues: readonly ServedQueue[], liveCount: number): string {
  const lines = findings.flatMap(({ severity, check, text, advice }) => [
    `${severity} ${check}: ${text}`,
    `  ${advice}`,
  ])
  const errorCount = findings.filter(({ severity }) => severity === 'error').length
  const warningCount = findings.length - errorCount
  const verdict = `${counted(liveCount, 'live worker')}, ${counted(errorCount, 'error')}, ${counted(warningCount, 'warning')}`
  return [...(queues.length === 0 ? [] : [table(columns, queues), '']), ...lines, verdict].join('\n')
}

function servedBy({ liveWorkers }: DoctorFacts, { name }: QueueRow): number {
  return liveWorkers.filter((worker) => worker.queues.includes(name)).length
}
