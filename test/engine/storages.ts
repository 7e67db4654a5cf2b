// The storages under which every engine test runs. A new one joins by adding a row here.
import { postgresOnServer } from './postgres-storage.ts'
import { sqliteInMemory, sqliteOnFile } from './sqlite-storage.ts'
import type { StorageCase } from './storage-case.ts'

/** Set where only the engine or SQLite is under proof: see scripts/remove-guards.ts. */
const isWithoutPostgres = process.env['CHOKAQ_TEST_WITHOUT_POSTGRES'] === '1'
const onServer = isWithoutPostgres ? [] : [await postgresOnServer()]

export const storages: readonly StorageCase[] = [sqliteInMemory, sqliteOnFile, ...onServer]
export const sharedStorages: readonly StorageCase[] = storages.filter(({ isShared }) => isShared)
