/** Numbered migrations, the same for every database: what is there, what is known, and what is still to run. */
import { ChokaQError } from '../core/errors.ts'

export interface Migration {
  /** 1, 2, 3, … without gaps. */
  readonly version: number
  readonly name: string
  readonly sql: string
}

/** For operators, who compare names with those a database has. */
export function migrationNames(known: readonly Migration[]): readonly { version: number; name: string }[] {
  return known.map(({ version, name }) => ({ version, name }))
}

/**
 * The migrations that are still to run, in order. Refuses a database of a newer ChokaQ: its tables may mean something
 * this version does not know.
 */
export function pendingMigrations(known: readonly Migration[], foundVersion: number): readonly Migration[] {
  if (foundVersion > known.length) {
    throw new ChokaQError('CHOKAQ_SCHEMA_NEWER', { found: foundVersion, known: known.length })
  }
  return known.slice(foundVersion)
}
