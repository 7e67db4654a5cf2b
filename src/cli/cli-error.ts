/** Errors of the command line itself; those of the engine are ChokaQErrors. docs/cli.md lists the codes. */
export const cliErrorCodes = [
  'CHOKAQ_CLI_USAGE',
  'CHOKAQ_CLI_JSON',
  'CHOKAQ_CLI_FILE_MISSING',
  'CHOKAQ_CLI_FILE_INVALID',
  'CHOKAQ_CLI_CONFIRM',
  'CHOKAQ_CLI_LISTEN',
  'CHOKAQ_CLI_NO_DATABASE',
  'CHOKAQ_CLI_STORAGE_UNSUPPORTED',
] as const
export type CliErrorCode = (typeof cliErrorCodes)[number]

export class CliError extends Error {
  override readonly name = 'CliError'
  readonly code: CliErrorCode

  constructor(code: CliErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}
