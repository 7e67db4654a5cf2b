import type { Command } from 'commander'
import { InvalidArgumentError } from 'commander'
import { suggestion } from '../../core/did-you-mean.ts'
import { formatMs } from '../../core/duration.ts'
import type { QueueRow } from '../../core/inspector.ts'
import type { ChokaQ } from '../../engine/enqueue/client.ts'
import { readName } from '../../engine/enqueue/enqueue-options.ts'
import {
  wholeNumber,
  withActor,
  withDatabase,
  type ActorFlags,
  type CommandHost,
  type DatabaseFlags,
} from '../command-host.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import type { Output } from '../output.ts'
import { withClient } from '../storage-location.ts'
import { table, type Column } from '../table.ts'
import { oneLine } from '../terminal-text.ts'

const maxLimit = 1_000_000

export function registerQueues(program: Command, host: CommandHost): void {
  const queues = program.command('queues').description('look at queues, pause and limit them')
  withDatabase(queues.command('list'))
    .description('every queue with its counts; LAG is the age of the oldest job that is due')
    .action((flags: DatabaseFlags) => host.run(flags, (out) => list(host, out, flags)))
  withActor(queues.command('pause'))
    .description('start nothing more of a queue; what runs goes on')
    .argument('<name>')
    .action((name: string, flags: ActorFlags) =>
      host.run(flags, (out) =>
        change(host, out, name, flags, async (chokaq) => {
          await chokaq.queues.pause(name, host.by(flags))
          return [{ name, paused: true }, `paused ${oneLine(name)}`]
        }),
      ),
    )
  withActor(queues.command('resume'))
    .description('go on with a paused queue')
    .argument('<name>')
    .action((name: string, flags: ActorFlags) =>
      host.run(flags, (out) =>
        change(host, out, name, flags, async (chokaq) => {
          await chokaq.queues.resume(name, host.by(flags))
          return [{ name, paused: false }, `resumed ${oneLine(name)}`]
        }),
      ),
    )
  withActor(queues.command('limit'))
    .description('how many jobs of a queue all workers together may own at once')
    .argument('<name>')
    .argument('<count>', `1 to ${maxLimit}, or none`, limitOf)
    .action((name: string, maxConcurrency: number | null, flags: ActorFlags) =>
      host.run(flags, (out) =>
        change(host, out, name, flags, async (chokaq) => {
          await chokaq.queues.limit(name, maxConcurrency, host.by(flags))
          return [
            { name, maxConcurrency },
            `${oneLine(name)}: ${maxConcurrency === null ? 'no limit' : `at most ${maxConcurrency} at once`}`,
          ]
        }),
      ),
    )
}

function limitOf(text: string): number | null {
  if (text === 'none') return null
  try {
    return wholeNumber(1, maxLimit)(text)
  } catch {
    throw new InvalidArgumentError(`Give a whole number from 1 to ${maxLimit}, or none.`)
  }
}

const columns: readonly Column<QueueRow>[] = [
  { title: 'QUEUE', of: (queue) => queue.name },
  { title: 'PAUSED', of: (queue) => (queue.paused ? 'yes' : 'no') },
  { title: 'LIMIT', of: (queue) => queue.maxConcurrency, align: 'right' },
  { title: 'SCHEDULED', of: (queue) => queue.scheduledCount, align: 'right' },
  { title: 'PENDING', of: (queue) => queue.pendingCount, align: 'right' },
  { title: 'FETCHED', of: (queue) => queue.fetchedCount, align: 'right' },
  { title: 'PROCESSING', of: (queue) => queue.processingCount, align: 'right' },
  { title: 'DEAD', of: (queue) => queue.deadCount, align: 'right' },
  { title: 'LAG', of: (queue) => (queue.lagMs === undefined ? null : formatMs(queue.lagMs)), align: 'right' },
]

function list({ io }: CommandHost, out: Output, flags: DatabaseFlags): Promise<ExitCode> {
  return withClient(io, flags, 'existing', async (chokaq) => {
    const queues = await chokaq.queues.list()
    out.result({ queues }, () => (queues.length === 0 ? 'no queues' : table(columns, queues)))
    return exitCodes.ok
  })
}

function change(
  { io }: CommandHost,
  out: Output,
  name: string,
  flags: ActorFlags,
  act: (chokaq: ChokaQ) => Promise<readonly [value: object, text: string]>,
): Promise<ExitCode> {
  readName(name, 'queue')
  return withClient(io, flags, 'existing', async (chokaq) => {
    const known = (await chokaq.queues.list()).map((queue) => queue.name)
    if (!known.includes(name)) {
      out.warn(`no job has been in queue "${oneLine(name)}" yet; ${oneLine(suggestion(name, known))}`)
    }
    const [value, text] = await act(chokaq)
    out.result(value, text)
    return exitCodes.ok
  })
}
