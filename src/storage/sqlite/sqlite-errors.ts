/** From what the driver throws to what the caller can act on. */
import { ChokaQError } from '../../core/errors.ts'

/**
 * What kind of trouble it is. `row`: the content of one row is refused, its neighbours are fine. `busy`: another
 * connection is in the way. `missing`: the tables are gone. `unknown`: not from the driver at all; passed on unchanged.
 */
export type SqliteTrouble = 'busy' | 'full' | 'read-only' | 'corrupt' | 'row' | 'missing' | 'failed' | 'unknown'

const troubles: Readonly<Record<string, SqliteTrouble>> = {
  SQLITE_BUSY: 'busy',
  SQLITE_LOCKED: 'busy',
  SQLITE_FULL: 'full',
  SQLITE_READONLY: 'read-only',
  SQLITE_CORRUPT: 'corrupt',
  SQLITE_NOTADB: 'corrupt',
  SQLITE_CONSTRAINT: 'row',
  SQLITE_TOOBIG: 'row',
  SQLITE_MISMATCH: 'row',
  SQLITE_RANGE: 'row',
}

export function troubleOf(error: unknown): SqliteTrouble {
  const code = sqliteCodeOf(error)
  if (code === undefined) return isBindingError(error) ? 'row' : 'unknown'
  if (isMissingTable(error)) return 'missing'
  return troubles[primaryCode(code)] ?? 'failed'
}

/** Translates an error of the driver; anything else comes back as it is. */
export function translated(error: unknown, path: string, waitedMs: number): unknown {
  const problem = error instanceof Error ? error.message : String(error)
  const options = { cause: error }
  switch (troubleOf(error)) {
    case 'unknown':
      return error
    case 'busy':
      return new ChokaQError('CHOKAQ_STORAGE_BUSY', { waitedMs: Math.round(waitedMs) }, options)
    case 'full':
      return new ChokaQError('CHOKAQ_STORAGE_FULL', { problem }, options)
    case 'read-only':
      return new ChokaQError('CHOKAQ_STORAGE_READ_ONLY', { path }, options)
    case 'corrupt':
      return new ChokaQError('CHOKAQ_STORAGE_CORRUPT', { path, problem }, options)
    case 'missing':
      return new ChokaQError('CHOKAQ_SCHEMA_MISSING', { where: path }, options)
    case 'row':
    case 'failed':
      return new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem }, options)
  }
}

/** The error of one refused row, for its verdict. */
export function rowError(error: unknown, path: string): Error {
  const known = translated(error, path, 0)
  return known instanceof Error ? known : new ChokaQError('CHOKAQ_STORAGE_FAILED', { problem: String(known) })
}

/** Such as SQLITE_BUSY_SNAPSHOT; undefined where the error is not SQLite's. */
function sqliteCodeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { code } = error as { readonly code?: unknown }
  return typeof code === 'string' && code.startsWith('SQLITE_') ? code : undefined
}

/** SQLITE_BUSY_SNAPSHOT → SQLITE_BUSY: the kinds above are those of the primary codes. */
function primaryCode(code: string): string {
  return code.split('_').slice(0, 2).join('_')
}

/** SQLite has no code of its own for it. */
function isMissingTable(error: unknown): boolean {
  return error instanceof Error && error.message.includes('no such table: chokaq_')
}

/** A value that cannot be bound: the driver says so with plain errors of its own. */
function isBindingError(error: unknown): boolean {
  return (
    (error instanceof TypeError || error instanceof RangeError) &&
    /\bbind\b|too (big|long)|invalid string length/i.test(error.message)
  )
}
