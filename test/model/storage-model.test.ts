// Random sequences of everything a storage can be asked for, against a model of the lifecycle, with one seed on both
// storages: the same operations must have the same verdicts and leave the same jobs on SQLite, on PostgreSQL and in the
// model. A failure prints the seed, the path and the shrunk sequence. CHOKAQ_MODEL_RUNS makes it run longer (npm run
// proof:model), CHOKAQ_MODEL_SEED repeats a run.
//
// The differences that are allowed, and no other:
// - A key that a worker computed. SQLite starts such a job in its fetch like any other; PostgreSQL leaves it to the start,
//   because under read committed the fetch's lock may hand over a newer row than its snapshot has, claimed after it (see
//   src/storage/postgres/statements/fetch.ts). Here `fastStartsComputedKeys`. The job runs either way.
// - Tokens. Each is above all that were given before; among the jobs of one call (fetch, rescue, disown) their order is open.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Runtime } from '../../src/core/runtime.ts'
import type { StorageDriver } from '../../src/core/storage.ts'
import { createFakeRuntime } from '../../src/testing/index.ts'
import { sqliteInMemory } from '../engine/sqlite-storage.ts'
import { anyCommands } from './storage-model/any-commands.ts'
import { compareAll, register, type Real } from './storage-model/commands.ts'
import { Model, type ModelOptions } from './storage-model/model.ts'
import { postgresTables } from './storage-model/postgres-tables.ts'

interface ModelledStorage extends ModelOptions {
  readonly name: string
  /** Without any job, on this time. */
  readonly openEmpty: (runtime: Runtime) => Promise<StorageDriver>
}

const storages: readonly ModelledStorage[] = [
  {
    name: 'sqlite in memory',
    fastStartsComputedKeys: true,
    openEmpty: async (runtime) => sqliteInMemory.open().storage.open(runtime),
  },
  { name: 'postgres', fastStartsComputedKeys: false, openEmpty: await postgresTables() },
]
/** The same for all: fast-check draws the same sequences from it. */
const seed = Number(process.env['CHOKAQ_MODEL_SEED'] ?? Date.now() % 1_000_000)
const runCount = Number(process.env['CHOKAQ_MODEL_RUNS'] ?? 100)
const commandCount = 150

describe.each(storages)('the storage on $name', (kind) => {
  test(
    `does what the model of the lifecycle says, in ${runCount} random sequences`,
    async () => {
      const met = new Set<string>()
      const sequences = fc.commands([...anyCommands], { maxCommands: commandCount, size: 'max' })
      await fc.assert(
        fc.asyncProperty(sequences, async (sequence) => {
          const runtime = createFakeRuntime()
          const driver = await kind.openEmpty(runtime)
          try {
            await register(driver)
            const real: Real = { driver, runtime, leases: [] }
            const model = new Model(kind)
            await fc.asyncModelRun(() => ({ model, real }), sequence)
            await compareAll(model, real)
            for (const end of model.ends) met.add(end)
          } finally {
            await driver.close()
          }
        }),
        { seed, numRuns: runCount, endOnFailure: false },
      )
      // The sequences are long enough to end jobs in every way there is.
      for (const end of [
        'completed',
        'cancelled',
        'skipped',
        'Interrupted',
        'InDoubt',
        'FatalError',
        'ReviewRequested',
      ]) {
        expect(met, `${end}, seed ${seed}`).toContain(end)
      }
    },
    60_000 + runCount * 2_000,
  )
})
