// What a completion binds is an array written by hand: the database reads back what was meant, whatever stands in it.
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { arrayText } from '../../src/storage/postgres/statements/array-text.ts'
import { createDatabase } from './database.ts'

const database = await createDatabase()
afterAll(() => database.drop())

async function readBack(values: readonly (string | number | null)[], type: 'text' | 'bigint'): Promise<unknown> {
  const text = `SELECT to_json($1::text::${type}[]) AS read`
  const [row] = await database.query<{ readonly read: unknown }>(text, [arrayText(values)])
  return row?.read
}

it('texts and nulls come back as they were', async () => {
  const element = fc.oneof(
    fc.constantFrom('', 'NULL', 'null', '"', '\\', '\\"', ',', '{}', ' ', '{"a":"b,\\n"}', null),
    fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\0', '')),
  )
  const property = fc.asyncProperty(fc.array(element), async (values) => {
    expect(await readBack(values, 'text')).toEqual(values)
  })
  await fc.assert(property, { numRuns: 50 })
})

it('numbers and nulls come back as they were', async () => {
  const values = [0, 1, null, Number.MAX_SAFE_INTEGER, -1]
  expect(await readBack(values, 'bigint')).toEqual(values)
})
