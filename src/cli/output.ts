/** The one place that writes. People get lines and tables, machines get one JSON text a line; errors go to stderr. */
import { describeFailure, failureText } from '../core/failure.ts'
import { suggestion } from '../core/did-you-mean.ts'
import { hasCode } from '../core/errors.ts'
import { codeOf, exitCodeOf, type ExitCode } from './exit-codes.ts'
import type { CliIo } from './io.ts'
import { jsonLine, severalLines } from './terminal-text.ts'

export interface OutputOptions {
  readonly json?: boolean
  readonly verbose?: boolean
}

export class Output {
  readonly json: boolean
  readonly verbose: boolean
  readonly #io: CliIo

  constructor(io: CliIo, options: OutputOptions) {
    this.#io = io
    this.json = options.json === true
    this.verbose = options.verbose === true
  }

  /** The result of a command: `value` for machines, `text` for people. */
  result(value: unknown, text: string | (() => string)): void {
    if (this.json) this.#io.stdout.write(`${jsonLine(value)}\n`)
    else this.line(typeof text === 'string' ? text : text())
  }

  line(text: string): void {
    this.#io.stdout.write(`${severalLines(text)}\n`)
  }

  /** For people only, and never in the way of what is piped on. */
  note(text: string): void {
    if (!this.json) this.#io.stderr.write(`${severalLines(text)}\n`)
  }

  warn(text: string): void {
    this.#io.stderr.write(this.json ? `${jsonLine({ warning: text })}\n` : `warning: ${severalLines(text)}\n`)
  }

  /** Prints an error and says which exit code it means. */
  error(error: unknown): ExitCode {
    const exitCode = exitCodeOf(error)
    const code = codeOf(error)
    const failure = describeFailure(error)
    // A message of our own is shown whole, however long the list in it is.
    const message = code === undefined ? failureText(failure) : (error as Error).message
    if (this.json) {
      this.#io.stderr.write(`${jsonLine({ error: { code: code ?? failure.code, message, exitCode } })}\n`)
    } else {
      this.#io.stderr.write(`${severalLines(code === undefined ? message : `${code}: ${message}`)}\n`)
      const hint = hintFor(error)
      if (hint !== undefined) this.#io.stderr.write(`${severalLines(hint)}\n`)
    }
    if (this.verbose && !this.json) this.#io.stderr.write(`${severalLines(stackOf(error))}\n`)
    return exitCode
  }
}

function hintFor(error: unknown): string | undefined {
  if (!hasCode(error, 'CHOKAQ_UNKNOWN_TYPE')) return undefined
  const hint = suggestion(error.details.type, error.details.known)
  return hint.startsWith('did you mean') ? hint : undefined
}

function stackOf(error: unknown): string {
  const { stack, causes } = describeFailure(error)
  const below = (causes ?? []).map((cause) => `caused by ${cause.name}: ${cause.message}`)
  return [stack ?? 'no stack', ...below].join('\n')
}
