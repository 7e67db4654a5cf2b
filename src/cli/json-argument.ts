/** JSON as people give it: on the command line, or `-` for standard input. */
import type { Readable } from 'node:stream'
import { CliError } from './cli-error.ts'

/** More than any payload may have; stops an endless stream. */
const maxInputBytes = 64_000_000

export async function jsonArgument(text: string, stdin: Readable, what: string): Promise<unknown> {
  const json = text === '-' ? await readAll(stdin, what) : text
  try {
    return JSON.parse(json) as unknown
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message.slice(0, 200) : String(cause)
    throw new CliError(
      'CHOKAQ_CLI_JSON',
      `${what} is no JSON: ${problem}. Quote it for your shell, such as '{"id":"p1"}', or pipe it in and give -.`,
      {
        cause,
      },
    )
  }
}

async function readAll(stdin: Readable, what: string): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stdin) {
    const part = typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Buffer)
    bytes += part.length
    if (bytes > maxInputBytes) {
      throw new CliError(
        'CHOKAQ_CLI_JSON',
        `${what} has more than ${maxInputBytes} bytes. Store the data elsewhere and pass its id.`,
      )
    }
    chunks.push(part)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch (cause) {
    throw new CliError('CHOKAQ_CLI_JSON', `${what} is no UTF-8 text.`, { cause })
  }
}
