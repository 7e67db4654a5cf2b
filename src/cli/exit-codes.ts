/** What the exit code of `chokaq` says. The one table: --help prints it, docs/cli.md repeats it, a test compares both. */
import { ChokaQError, type ErrorCode } from '../core/errors.ts'
import { CliError, type CliErrorCode } from './cli-error.ts'

export const exitCodes = {
  ok: 0,
  failure: 1,
  usage: 2,
  refused: 3,
  notFound: 4,
  storage: 5,
  interrupted: 130,
  terminated: 143,
} as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

export const exitCodeTexts: Readonly<Record<keyof typeof exitCodes, string>> = {
  ok: 'done; a worker that was asked to stop has stopped gracefully',
  failure: 'it failed; a check found what must be changed',
  usage: 'wrong usage: an option, an argument, JSON or a payload that is not valid',
  refused: 'refused: it needs a confirmation or the contract, or it is not possible in this state',
  notFound: 'not found: a job, a type or a file',
  storage: 'the storage is not available: busy, full, read-only, missing, damaged or of another kind',
  interrupted: 'a second SIGINT (Ctrl+C) forced the worker to stop',
  terminated: 'a second SIGTERM forced the worker to stop',
}

type Meaning = keyof typeof exitCodes

/** What is not listed is a failure. */
const meanings: Partial<Readonly<Record<ErrorCode, Meaning>>> & Readonly<Record<CliErrorCode, Meaning>> = {
  CHOKAQ_CLI_USAGE: 'usage',
  CHOKAQ_CLI_JSON: 'usage',
  CHOKAQ_CLI_FILE_MISSING: 'notFound',
  CHOKAQ_CLI_FILE_INVALID: 'failure',
  CHOKAQ_CLI_CONFIRM: 'refused',
  CHOKAQ_CLI_LISTEN: 'failure',
  CHOKAQ_CLI_NO_DATABASE: 'storage',
  CHOKAQ_CLI_STORAGE_UNSUPPORTED: 'storage',
  CHOKAQ_CONTRACT_INVALID: 'usage',
  CHOKAQ_HANDLER_INVALID: 'usage',
  CHOKAQ_CONFIG_INVALID: 'usage',
  CHOKAQ_DURATION_INVALID: 'usage',
  CHOKAQ_OPTION_INVALID: 'usage',
  CHOKAQ_PAYLOAD_INVALID: 'usage',
  CHOKAQ_NOT_JSON: 'usage',
  CHOKAQ_TOO_LARGE: 'usage',
  CHOKAQ_CURSOR_INVALID: 'usage',
  CHOKAQ_BOOT_REFUSED: 'refused',
  CHOKAQ_EMPTY_KEY: 'refused',
  CHOKAQ_KEY_REUSED: 'refused',
  CHOKAQ_ID_REUSED: 'refused',
  CHOKAQ_RAW_REFUSED: 'refused',
  CHOKAQ_NOT_POSSIBLE: 'refused',
  CHOKAQ_ABSENCE_UNPROVEN: 'refused',
  CHOKAQ_UNKNOWN_TYPE: 'notFound',
  CHOKAQ_JOB_NOT_FOUND: 'notFound',
  CHOKAQ_ENQUEUE_UNKNOWN: 'storage',
  CHOKAQ_STORAGE_BUSY: 'storage',
  CHOKAQ_STORAGE_FULL: 'storage',
  CHOKAQ_STORAGE_READ_ONLY: 'storage',
  CHOKAQ_STORAGE_CORRUPT: 'storage',
  CHOKAQ_STORAGE_FOREIGN: 'storage',
  CHOKAQ_STORAGE_FAILED: 'storage',
  CHOKAQ_SCHEMA_NEWER: 'storage',
  CHOKAQ_SCHEMA_MISSING: 'storage',
  CHOKAQ_NOT_DURABLE: 'storage',
  CHOKAQ_DRIVER_MISSING: 'storage',
}

export function exitCodeOf(error: unknown): ExitCode {
  const code = codeOf(error)
  return exitCodes[(code === undefined ? undefined : meanings[code]) ?? 'failure']
}

/** Our own code; undefined for what somebody else threw. */
export function codeOf(error: unknown): ErrorCode | CliErrorCode | undefined {
  if (error instanceof CliError) return error.code
  // The brand that instanceof looks at does not carry the type of the code.
  return error instanceof ChokaQError ? (error as ChokaQError).code : undefined
}

export function exitCodeTable(): string {
  const lines = Object.entries(exitCodes).map(
    ([meaning, code]) => `  ${String(code).padEnd(4)} ${exitCodeTexts[meaning as Meaning]}`,
  )
  return `Exit codes:\n${lines.join('\n')}`
}
