/** From what the server and its driver say to what the caller can act on. */
import { ChokaQError } from '../../core/errors.ts'

/**
 * What kind of trouble it is.
 * `conflict`: rolled back, and right when repeated (serialization, deadlock). `locked`: a lock did not come in time.
 * `row`: the content of a row is refused. `connection`: the connection is gone or no good; what was sent may have
 * happened. `refused`: the server will never do this as configured. `unknown`: not from the database at all.
 */
export type PostgresTrouble =
  'conflict' | 'locked' | 'row' | 'connection' | 'full' | 'missing' | 'refused' | 'corrupt' | 'failed' | 'unknown'

const byCode: Readonly<Record<string, PostgresTrouble>> = {
  '40001': 'conflict',
  '40P01': 'conflict',
  '55P03': 'locked',
  '53100': 'full',
  // A server that became a standby, or is on its way up or down: another connection finds the right one.
  '25006': 'connection',
  '57P01': 'connection',
  '57P02': 'connection',
  '57P03': 'connection',
  '57P05': 'connection',
  '53300': 'connection',
  // An idle transaction was ended by the server: its connection is closed.
  '25P03': 'connection',
  '25P04': 'connection',
  '42P01': 'missing',
  '42883': 'missing',
  '3F000': 'missing',
  '42501': 'refused',
  '3D000': 'refused',
  '28000': 'refused',
  '28P01': 'refused',
  XX001: 'corrupt',
  XX002: 'corrupt',
}
const byClass: Readonly<Record<string, PostgresTrouble>> = {
  '08': 'connection',
  '22': 'row',
  '23': 'row',
  // Over a limit of the server: JSON nested too deep, a text too long for its index.
  '54': 'row',
}

/** Errors of the socket and of the driver itself, which have no SQLSTATE. */
const socketCodes =
  /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EHOSTDOWN|EADDRNOTAVAIL|ENOENT$|EACCES$|ERR_TLS|ERR_SSL|ERR_STREAM|ERR_SOCKET)/
const driverTexts =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout|timeout expired|connection (timeout|error)|The server does not support SSL|There was an error establishing an SSL|Connection ended|read E|write E|socket hang up|This socket has been ended)/i

export function troubleOf(error: unknown): PostgresTrouble {
  if (!(error instanceof Error) || error instanceof ChokaQError) return 'unknown'
  const state = sqlStateOf(error)
  if (state !== undefined) return byCode[state] ?? byClass[state.slice(0, 2)] ?? 'failed'
  const { code } = error as { readonly code?: unknown }
  if (typeof code === 'string' && socketCodes.test(code)) return 'connection'
  return driverTexts.test(error.message) ? 'connection' : 'unknown'
}

/** The session is not the one that prepared the statement, or somebody else prepared it, or its columns have changed. */
const lostPlanStates: ReadonlySet<string | undefined> = new Set(['26000', '42P05', '0A000'])
const otherText = /^Prepared statements must be unique/

/**
 * A prepared statement that is not there, or is another one; so says the driver, too, where a client changes the texts (a
 * comment with the trace of the call). Nothing was executed.
 */
export function isPlanLost(error: unknown): boolean {
  return lostPlanStates.has(sqlStateOf(error)) || (error instanceof Error && otherText.test(error.message))
}

/** Five letters and digits that the server sent with the error; a socket's code has other lengths or words. */
export function sqlStateOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && severity !== undefined ? code : undefined
}

/** Translates an error of the database; anything else comes back as it is. */
export function translated(error: unknown, location: string, waitedMs: number): unknown {
  const problem = error instanceof Error ? error.message : String(error)
  const options = { cause: error }
  switch (troubleOf(error)) {
    case 'unknown':
      return error
    case 'locked':
    case 'conflict':
      return new ChokaQError('CHOKAQ_STORAGE_BUSY', { waitedMs: Math.round(waitedMs) }, options)
    case 'full':
      return new ChokaQError('CHOKAQ_STORAGE_FULL', { problem }, options)
    case 'missing':
      return new ChokaQError('CHOKAQ_SCHEMA_MISSING', { where: location }, options)
    case 'refused':
      return new ChokaQError('CHOKAQ_CONFIG_INVALID', { problem: `${location} refuses it: ${problem}` }, options)
    case 'corrupt':
      return new ChokaQError('CHOKAQ_STORAGE_CORRUPT', { path: location, problem }, options)
    case 'row':
    case 'connection':
    case 'failed':
      return new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem }, options)
  }
}
