// K21: whoever makes the tables dies after one of its steps.
import { describe, expect, test } from 'vitest'
import { migrations as postgresMigrations } from '../../src/storage/postgres/migrations.ts'
import { migrations as sqliteMigrations } from '../../src/storage/sqlite/migrations.ts'
import { crashRuns } from './cells.ts'
import { crashStorages, sqliteFile } from './storages.ts'

describe.each(crashStorages())('an installation dies on $name', (storage) => {
  const open = crashRuns(storage, 'installations')
  const migrations = storage === sqliteFile ? sqliteMigrations : postgresMigrations

  test.for(migrations.map((_, n) => n + 1))(
    'K21 after migration %d: no half of a schema, and the next start makes all of it',
    async (step, context) => {
      const run = await open(context, { isEmpty: true })
      const first = run.order('none')
      expect((await run.producer('producer-a', [first], [`migration-step:${step}`])).signal).toBe('SIGKILL')
      expect(await run.database.tables()).toEqual([])
      expect((await run.producer('producer-b', [first])).code).toBe(0)
      await run.worker('worker-a')
      await run.drained()
      expect((await run.snapshot()).jobs.map(({ state }) => state)).toEqual(['completed'])
      expect(await run.verdict()).toEqual([])
    },
  )
})
