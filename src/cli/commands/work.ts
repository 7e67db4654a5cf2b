import type { Command } from 'commander'
import type { WorkerOptions } from '../../core/config.ts'
import type { Middleware } from '../../core/ctx.ts'
import type { ChokaQEvent } from '../../core/events.ts'
import { describeFailure } from '../../core/failure.ts'
import type { ChokaQ } from '../../engine/enqueue/client.ts'
import { createWorker, type Worker } from '../../engine/worker.ts'
import { commaSeparated, wholeNumber, withDatabase, type CommandHost, type DatabaseFlags } from '../command-host.ts'
import { eventJson, eventText, isForPeople, type CliEvent } from '../event-lines.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import type { CliIo, StopSignal } from '../io.ts'
import type { Output } from '../output.ts'
import { withClient } from '../storage-location.ts'
import { openTelemetry } from '../telemetry.ts'
import { loadWorkFile, type WorkFile } from '../user-file.ts'
import { listenAddress, WorkServer, type ListenAddress } from '../work-server.ts'

interface Flags extends DatabaseFlags {
  readonly concurrency?: number
  readonly queues?: readonly string[]
  readonly http?: ListenAddress
}

/** How long a forced stop may take before the process ends anyway: its handlers were aborted, its jobs get rescued. */
const forcedStopMs = 10_000

export function registerWork(program: Command, host: CommandHost): void {
  withDatabase(program.command('work'))
    .description('run the handlers of a file until SIGINT or SIGTERM; a second signal forces it')
    .argument(
      '<file>',
      'a file that exports handlers, and optionally worker and client options (TypeScript or JavaScript)',
    )
    .option('--concurrency <number>', 'handlers running at once', wholeNumber(1, 1_000))
    .option(
      '--queues <names>',
      'queues to serve, with commas between them (default: those of the handlers)',
      commaSeparated,
    )
    .option('--http <address>', 'serve /health/live, /health/ready and /metrics, on :port or host:port', listenAddress)
    .action((file: string, flags: Flags) => host.run(flags, (out) => work(host.io, out, file, flags)))
}

async function work(io: CliIo, out: Output, file: string, flags: Flags): Promise<ExitCode> {
  const workFile = await loadWorkFile(file, io.cwd)
  return withClient(io, { ...flags, client: workFile.client }, 'may-be-new', async (chokaq) => {
    const print = (event: ChokaQEvent | CliEvent): void => {
      const at = new Date()
      if (out.json) out.line(eventJson(event, at))
      else if (isCliEvent(event) || isForPeople(event, out.verbose)) out.line(eventText(event, at))
    }
    chokaq.subscribe(print)
    const telemetry = await openTelemetry(chokaq, flags.http !== undefined)
    try {
      const worker = createWorker(workerOptions(chokaq, workFile, flags))
      const metrics = telemetry.metrics ?? telemetry.problem
      if (flags.http !== undefined && typeof metrics === 'string') out.warn(`/metrics ${metrics}`)
      const { health } = workFile
      // Wrong limits are told now, and not by the first probe.
      if (flags.http !== undefined) await chokaq.health(health)
      const server = flags.http && (await WorkServer.open(flags.http, { chokaq, worker, metrics, health }))
      if (server !== undefined) print({ name: 'cli.listening', url: server.url })
      try {
        return await new Shift(io, worker, print).run()
      } finally {
        await server?.close()
      }
    } finally {
      await telemetry.close()
    }
  })
}

function isCliEvent(event: ChokaQEvent | CliEvent): event is CliEvent {
  return event.name.startsWith('cli.')
}

function workerOptions(chokaq: ChokaQ, { handlers, worker }: WorkFile, { concurrency, queues }: Flags) {
  return {
    ...(worker as WorkerOptions & { queues?: readonly string[]; middleware?: readonly Middleware[] }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(queues === undefined ? {} : { queues }),
    chokaq,
    handlers,
  }
}

/** One run of a worker under signals. */
class Shift {
  readonly #io: CliIo
  readonly #worker: Worker
  readonly #print: (event: CliEvent) => void
  /** Said first by a second signal or by an exception nobody caught; what comes later changes nothing. */
  #forcedExit: ExitCode | undefined
  #isStopping = false
  #forcedEnd: () => void = () => undefined

  constructor(io: CliIo, worker: Worker, print: (event: CliEvent) => void) {
    this.#io = io
    this.#worker = worker
    this.#print = print
  }

  async run(): Promise<ExitCode> {
    const stopListening = [
      this.#io.onSignal((signal) => {
        this.#onSignal(signal)
      }),
      this.#io.onUncaught((kind, thrown) => {
        this.#onUncaught(kind, thrown)
      }),
    ]
    const forced = new Promise<void>((resolve) => {
      this.#forcedEnd = resolve
    })
    try {
      await Promise.race([this.#worker.run(), forced])
      return this.#forcedExit ?? exitCodes.ok
    } finally {
      for (const stop of stopListening) stop()
    }
  }

  #onSignal(signal: StopSignal): void {
    const force = this.#isStopping
    this.#print({ name: 'cli.signal', signal, force, runningCount: this.#worker.runningCount })
    if (force) this.#force(signal === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated)
    else this.#stop()
  }

  /**
   * A promise that a handler left behind and that rejects later must not cost the other jobs their worker: it is
   * reported and the worker goes on. After an exception nobody caught, nobody knows what state the process is in: the
   * worker stops at once, and what it ran is rescued.
   */
  #onUncaught(kind: 'rejection' | 'exception', thrown: unknown): void {
    const name = kind === 'rejection' ? 'cli.unhandled_rejection' : 'cli.uncaught_exception'
    this.#print({ name, failure: describeFailure(thrown) })
    if (kind === 'exception') this.#force(exitCodes.failure)
  }

  #stop(): void {
    this.#isStopping = true
    this.#end(false)
  }

  #force(exitCode: ExitCode): void {
    this.#isStopping = true
    if (this.#forcedExit !== undefined) return
    this.#forcedExit = exitCode
    this.#end(true)
    setTimeout(this.#forcedEnd, forcedStopMs).unref()
  }

  #end(force: boolean): void {
    this.#worker.stop({ force }).catch((error: unknown) => {
      this.#print({ name: 'cli.unhandled_rejection', failure: describeFailure(error) })
    })
  }
}
