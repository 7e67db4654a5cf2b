import { storageConformance } from 'chokaq/testing'
import { inMemory } from './sqlite-harness.ts'

// SQLite in memory is the in-memory storage: there is no third implementation. It has no second connection, so the races
// run on one.
storageConformance(inMemory())
