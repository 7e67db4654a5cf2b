/**
 * The processes a run starts. Each is this program again, with a hidden role, so that it works from source and from the
 * built package alike. Only what was started here is ever killed.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProviderSetup, ToChild, WorkerSetup } from './messages.ts'

export type Role =
  | { readonly role: 'worker'; readonly setup: WorkerSetup }
  | { readonly role: 'provider'; readonly setup: ProviderSetup }

export interface ProcessPlace {
  /** For what it prints. */
  readonly folder: string
  /** Added to the environment of this process. */
  readonly env: Readonly<Record<string, string>>
}

/** The run itself broke; this says nothing of the books. */
export class RunFailed extends Error {
  override readonly name = 'RunFailed'
}

export class DemoProcess<Message> {
  readonly name: string
  readonly pid: number
  /** Resolves when the process has ended and every message of it has been heard. */
  readonly ended: Promise<NodeJS.Signals | number>
  readonly #child: ChildProcess
  readonly #errorLog: string
  #mayEnd = false

  constructor(name: string, what: Role, { folder, env }: ProcessPlace, onMessage: (message: Message) => void) {
    this.name = name
    this.#errorLog = join(folder, `${name}.log`)
    const log = openSync(this.#errorLog, 'a')
    const args = ['demo', '--role', what.role, '--setup', JSON.stringify(what.setup)]
    this.#child = fork(process.argv[1] ?? '', args, {
      stdio: ['ignore', log, log, 'ipc'],
      env: { ...process.env, ...env },
    })
    closeSync(log)
    this.pid = this.#child.pid ?? -1
    this.#child.on('message', onMessage)
    const exited = new Promise<NodeJS.Signals | number>((resolve, reject) => {
      this.#child.once('exit', (code, signal) => {
        resolve(signal ?? code ?? -1)
      })
      this.#child.once('error', reject)
    })
    const silent = new Promise<void>((resolve) => this.#child.once('disconnect', resolve))
    this.ended = Promise.all([exited, silent]).then(([how]) => how)
  }

  /** Rejects if the process ends without having been stopped or killed from here. */
  async endedByItself(): Promise<never> {
    const how = await this.ended
    if (this.#mayEnd) return new Promise(() => undefined)
    const log = readFileSync(this.#errorLog, 'utf8').trim()
    throw new RunFailed(`${this.name} ended by itself (${how}). It said: ${log === '' ? 'nothing' : log}`)
  }

  /** SIGKILL: no handler of the process runs, nothing is flushed. */
  async endNow(): Promise<void> {
    this.#mayEnd = true
    this.#child.kill('SIGKILL')
    await this.ended
  }

  async stop(): Promise<void> {
    this.#mayEnd = true
    const stop: ToChild = { kind: 'stop' }
    // The channel of a process that has just died takes no message; then there is nothing to stop.
    this.#child.send(stop, () => undefined)
    await this.ended
  }
}
