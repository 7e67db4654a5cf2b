import { afterAll } from 'vitest'
import { storageConformance } from '../../src/testing/conformance/storage-conformance.ts'
import { databaseFor, inPostgres } from './postgres-harness.ts'

// A real server, on virtual time, with two connections at one database.
const database = await databaseFor()
afterAll(() => database.drop())
storageConformance(inPostgres(database, { name: 'PostgreSQL' }))
