// Runs the command line inside the test: streams are kept as text, signals and uncaught errors come from the test.
import { PassThrough, Readable, Writable } from 'node:stream'
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
  /** A person at a terminal, who presses this key when asked. */
  readonly presses?: string
}

class TextSink extends Writable {
  readonly isTTY: boolean
  text = ''
  #waiting: { readonly pattern: RegExp; readonly resolve: (line: string) => void }[] = []

  constructor(isTTY: boolean) {
    super()
    this.isTTY = isTTY
  }

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
  const { presses } = options
  const stdout = new TextSink(presses !== undefined)
  const stderr = new TextSink(presses !== undefined)
  const onSignal = new Set<(signal: StopSignal) => void>()
  const onUncaught = new Set<(kind: 'rejection' | 'exception', thrown: unknown) => void>()
  const io: CliIo = {
    stdin:
      presses === undefined
        ? Readable.from(options.stdin === undefined ? [] : [options.stdin])
        : keyboard(presses, stderr),
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

/** Presses the key once the question is on the screen. */
function keyboard(key: string, screen: TextSink): Readable {
  const stdin = new PassThrough()
  void screen.line(/\?|will/).then(() => setImmediate(() => stdin.write(key)))
  return Object.assign(stdin, { isTTY: true, setRawMode: () => stdin })
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
