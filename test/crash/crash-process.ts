// One real process of a run, seen from the test that started it. Only what was started here is ever signalled.
import { fork, type ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { programOf } from './fixture-programs.ts'
import type { HistoryWriter } from './fixtures/history-writer.ts'
import type { Setup } from './fixtures/work.ts'

export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export class CrashProcess {
  readonly name: string
  readonly pid: number
  readonly ended: Promise<Ending>
  ending: Ending | undefined
  readonly #child: ChildProcess
  readonly #history: HistoryWriter
  readonly #log: string

  constructor(setup: Setup, folder: string, history: HistoryWriter, nodeFlags: readonly string[] = []) {
    this.name = setup.name
    this.#history = history
    this.#log = join(folder, `${setup.name}.log`)
    const log = openSync(this.#log, 'a')
    this.#child = fork(programOf(setup.role), [JSON.stringify(setup)], {
      execArgv: [...nodeFlags],
      // Nothing of the test runner's environment (its own conditions, above all) reaches the process.
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', log, log, 'ipc'],
    })
    closeSync(log)
    this.pid = this.#child.pid ?? -1
    this.ended = new Promise((resolve, reject) => {
      this.#child.once('error', reject)
      this.#child.once('exit', (code, signal) => {
        this.ending = { code, signal }
        history.write({ kind: 'exit', target: this.pid, code, signal })
        resolve(this.ending)
      })
    })
  }

  /** SIGKILL: no handler of the process runs, nothing is flushed. Resolves when it is gone. */
  async kill(point: string): Promise<void> {
    if (this.ending !== undefined) return
    this.#history.write({ kind: 'kill', target: this.pid, point })
    this.#child.kill('SIGKILL')
    await this.ended
  }

  freeze(): void {
    this.#history.write({ kind: 'freeze', target: this.pid })
    this.#child.kill('SIGSTOP')
  }

  thaw(): void {
    this.#child.kill('SIGCONT')
    this.#history.write({ kind: 'thaw', target: this.pid })
  }

  /** Asks it to stop, as a platform does; it may take `graceMs`. */
  askToStop(graceMs: number): void {
    this.#history.write({ kind: 'stop.call', target: this.pid, graceMs })
    this.#child.kill('SIGTERM')
  }

  said(): string {
    return readFileSync(this.#log, 'utf8')
  }
}
