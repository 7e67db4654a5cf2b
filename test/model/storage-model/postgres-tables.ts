// PostgreSQL under the model: the tables are made once and emptied for each sequence, because making them takes longer
// than a sequence does.
import { postgres } from 'chokaq/postgres'
import { afterAll } from 'vitest'
import type { Runtime } from '../../../src/core/runtime.ts'
import type { StorageDriver } from '../../../src/core/storage.ts'
import { createDatabase } from '../../postgres/database.ts'
import { virtualPool } from '../../postgres/virtual-time.ts'

export async function postgresTables(): Promise<(runtime: Runtime) => Promise<StorageDriver>> {
  const database = await createDatabase()
  afterAll(() => database.drop())
  const tables = await database.query<{ readonly name: string }>(
    `SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'chokaq' AND tablename <> 'migrations'`,
  )
  const empty = tables.map(({ name }) => `DELETE FROM chokaq.${name}`).join('; ')
  return async (runtime) => {
    await database.query(empty)
    return postgres(virtualPool(database.url, runtime.clock), { poolSize: 2, listen: false }).open(runtime)
  }
}
