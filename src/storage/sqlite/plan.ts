/** What opening the file would do to its tables, as a script to read or to run. Writes nothing, and makes no file. */
import { type MigrationPlan, planOf } from '../migration.ts'
import { hasContent, markAsOwn, migrationsTable, openDriver, schemaVersion, stepTexts } from './connection.ts'
import { betterSqlite3 } from './database.ts'
import { migrations } from './migrations.ts'
import { translated } from './sqlite-errors.ts'

export function planMigrations(path: string, nowMs: number): MigrationPlan {
  const isNew = !hasContent(path)
  const found = isNew ? 0 : installedVersion(path)
  return planOf(path, migrations, found, (pending) => [
    'BEGIN IMMEDIATE',
    migrationsTable,
    ...pending.flatMap((migration) => stepTexts(migration, nowMs)),
    ...(isNew ? [markAsOwn] : []),
    'COMMIT',
  ])
}

function installedVersion(path: string): number {
  try {
    const db = openDriver(betterSqlite3, path)
    try {
      return schemaVersion(db, path)
    } finally {
      db.close()
    }
  } catch (error) {
    throw translated(error, path, 0)
  }
}
