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

/** What a migration would do to a database, and nothing done yet. */
export interface MigrationPlan {
  /** Without credentials. */
  readonly location: string
  /** 0 where there are no tables. */
  readonly foundVersion: number
  readonly knownVersion: number
  readonly pending: readonly { readonly version: number; readonly name: string }[]
  /** A script that does the same; empty where nothing is pending. */
  readonly sql: string
}

export function planOf(
  location: string,
  known: readonly Migration[],
  foundVersion: number,
  texts: (pending: readonly Migration[]) => readonly string[],
): MigrationPlan {
  const pending = pendingMigrations(known, foundVersion)
  const sql = pending.length === 0 ? '' : texts(pending).map(asScript).join('\n')
  return { location, foundVersion, knownVersion: known.length, pending: migrationNames(pending), sql }
}

function asScript(text: string): string {
  const trimmed = text.trimEnd()
  return trimmed.endsWith(';') ? trimmed : `${trimmed};`
}
