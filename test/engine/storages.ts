// The storages under which every engine test runs. A new one joins by adding a row here.
import { postgresOnServer } from './postgres-storage.ts'
import { sqliteInMemory, sqliteOnFile } from './sqlite-storage.ts'
import type { StorageCase } from './storage-case.ts'

export const storages: readonly StorageCase[] = [sqliteInMemory, sqliteOnFile, await postgresOnServer()]
export const sharedStorages: readonly StorageCase[] = storages.filter(({ isShared }) => isShared)
