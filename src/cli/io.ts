/** Everything the command line takes from the process around it, so that tests run it in theirs. */
import type { Readable, Writable } from 'node:stream'

export type StopSignal = 'SIGINT' | 'SIGTERM'

export interface TerminalOut extends Writable {
  readonly isTTY?: boolean
}

export interface TerminalIn extends Readable {
  readonly isTTY?: boolean
}

export interface CliIo {
  readonly stdin: TerminalIn
  readonly stdout: TerminalOut
  readonly stderr: TerminalOut
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** The user of the operating system: who acts where --actor is left out. */
  readonly userName: string
  /** Calls `listener` for each signal instead of dying from it; returns how to stop. */
  onSignal(listener: (signal: StopSignal) => void): () => void
  /** Calls `listener` for what nobody caught, instead of dying from it; returns how to stop. */
  onUncaught(listener: (kind: 'rejection' | 'exception', thrown: unknown) => void): () => void
}
