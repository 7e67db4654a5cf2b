/** One of the two places for a worker: who works there now, and what it is doing. */
import { DemoProcess, type ProcessPlace } from './child-process.ts'
import type { FromWorker, ReportedEvent, WorkerSetup } from './messages.ts'

export interface RunningHandler {
  readonly jobId: string
  readonly type: string
  readonly attempt: number
}

export interface PlaceOptions {
  /** Such as 'worker-b'. */
  readonly name: string
  readonly process: ProcessPlace
  readonly setup: Omit<WorkerSetup, 'name'>
  readonly onEvent: (event: ReportedEvent) => void
  /** A process that ended although nobody stopped it. */
  readonly onFailure: (error: unknown) => void
}

export class WorkerPlace {
  readonly #options: PlaceOptions
  #startCount = 0
  #process: DemoProcess<FromWorker> | undefined
  #workerId = ''
  #running = new Map<string, RunningHandler>()

  constructor(options: PlaceOptions) {
    this.#options = options
  }

  /** Name of the process that works here now. */
  get name(): string {
    return this.#process?.name ?? this.#options.name
  }

  get pid(): number {
    return this.#process?.pid ?? -1
  }

  /** The engine's id of the worker that works here now. */
  get workerId(): string {
    return this.#workerId
  }

  get running(): readonly RunningHandler[] {
    return [...this.#running.values()]
  }

  /** Resolves when the worker has registered. */
  start(): Promise<void> {
    const { name, setup, onFailure } = this.#options
    this.#startCount += 1
    const processName = `${name}.${this.#startCount}`
    // A map of its own for each process: messages of a killed one must not touch its successor's.
    const running = new Map<string, RunningHandler>()
    this.#running = running
    return new Promise((resolve, reject) => {
      const role = { role: 'worker', setup: { ...setup, name: processName } } as const
      const child = new DemoProcess<FromWorker>(processName, role, this.#options.process, (message) => {
        if (message.kind === 'ready') {
          this.#workerId = message.workerId
          resolve()
        } else this.#hear(message, running)
      })
      this.#process = child
      child.endedByItself().catch((error: Error) => {
        reject(error)
        onFailure(error)
      })
    })
  }

  /** Kills the process; gives the handlers that had begun and not ended. */
  async kill(): Promise<readonly RunningHandler[]> {
    const running = this.#running
    await this.#process?.endNow()
    return [...running.values()]
  }

  async stop(): Promise<void> {
    await this.#process?.stop()
  }

  /** Whatever it does: the run is over. */
  async endNow(): Promise<void> {
    await this.#process?.endNow()
  }

  #hear(message: Exclude<FromWorker, { kind: 'ready' }>, running: Map<string, RunningHandler>): void {
    if (message.kind === 'begin') running.set(message.jobId, message)
    else if (message.kind === 'end') running.delete(message.jobId)
    else this.#options.onEvent(message.event)
  }
}
