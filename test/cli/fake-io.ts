// Runs the command line inside the test: streams are kept as text, signals and uncaught errors come from the test.
import { Readable, Writable } from 'node:stream'
import { runCli } from '../../src/cli/program.ts'
import type { CliIo, StopSignal } from '../../src/cli/io.ts'

export interface CliResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** Every line of stdout that is JSON. */
  readonly json: readonly unknown[]
}

export interface FakeOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string | Uint8Array
}

class TextSink extends Writable {
  text = ''
  #waiting: { readonly pattern: RegExp; readonly resolve: (line: string) => void }[] = []

  override _write(chunk: Buffer | string, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString()
    this.#waiting = this.#waiting.filter(({ pattern, resolve }) => {
      const line = this.#find(pattern)
      if (line !== undefined) resolve(line)
      return line === undefined
    })
    done()
  }

  line(pattern: RegExp): Promise<string> {
    const line = this.#find(pattern)
    if (line !== undefined) return Promise.resolve(line)
    return new Promise((resolve) => this.#waiting.push({ pattern, resolve }))
  }

  #find(pattern: RegExp): string | undefined {
    return this.text.split('\n').find((line) => pattern.test(line))
  }
}

export interface RunningCli {
  readonly done: Promise<CliResult>
  /** The first line of stdout that matches, now or later. */
  line(pattern: RegExp): Promise<string>
  signal(signal: StopSignal): void
  uncaught(kind: 'rejection' | 'exception', thrown: unknown): void
  /** What the command listens to at this moment. */
  listenerCount(): number
}

export function fakeIo(options: FakeOptions) {
  const stdout = new TextSink()
  const stderr = new TextSink()
  const onSignal = new Set<(signal: StopSignal) => void>()
  const onUncaught = new Set<(kind: 'rejection' | 'exception', thrown: unknown) => void>()
  const io: CliIo = {
    stdin: Readable.from(options.stdin === undefined ? [] : [options.stdin]),
    stdout,
    stderr,
    env: options.env ?? {},
    cwd: options.cwd,
    userName: 'tester',
    onSignal: (listener) => listenIn(onSignal, listener),
    onUncaught: (listener) => listenIn(onUncaught, listener),
  }
  return { io, stdout, stderr, onSignal, onUncaught }
}

export function startCli(args: readonly string[], options: FakeOptions): RunningCli {
  const { io, stdout, stderr, onSignal, onUncaught } = fakeIo(options)
  return {
    done: runCli(args, io).then((code) => ({
      code,
      stdout: stdout.text,
      stderr: stderr.text,
      json: jsonLines(stdout.text),
    })),
    line: (pattern) => stdout.line(pattern),
    signal: (signal) => {
      for (const listener of onSignal) listener(signal)
    },
    uncaught: (kind, thrown) => {
      for (const listener of onUncaught) listener(kind, thrown)
    },
    listenerCount: () => onSignal.size + onUncaught.size,
  }
}

function listenIn<L>(listeners: Set<L>, listener: L): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function cli(args: readonly string[], options: FakeOptions): Promise<CliResult> {
  return startCli(args, options).done
}

function jsonLines(text: string): readonly unknown[] {
  return text.split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line) as unknown]
    } catch {
      return []
    }
  })
}
