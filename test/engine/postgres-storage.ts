// PostgreSQL under the engine's tests: one database per test file, one schema per test, on virtual time.
import { postgres } from 'chokaq/postgres'
import { afterAll } from 'vitest'
import { createDatabase } from '../postgres/database.ts'
import { virtualPool, yieldToDatabase } from '../postgres/virtual-time.ts'
import type { StorageCase } from './storage-case.ts'

export async function postgresOnServer(): Promise<StorageCase> {
  const database = await createDatabase({ isEmpty: true })
  afterAll(() => database.drop())
  let count = 0
  return {
    name: 'postgres',
    isShared: true,
    yieldToHost: yieldToDatabase,
    open() {
      count += 1
      const schema = `test ${count}`
      const { capabilities, location } = postgres(database.url, { schema })
      const storage = {
        capabilities,
        location,
        open: (runtime: Parameters<ReturnType<typeof postgres>['open']>[0]) =>
          postgres(virtualPool(database.url, runtime.clock), { schema, poolSize: 2 }).open(runtime),
      }
      return { storage, path: database.url, remove: () => undefined }
    },
  }
}
