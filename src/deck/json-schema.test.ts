import type { StandardSchemaV1 } from '@standard-schema/spec'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { schemaFrom } from './json-schema.ts'

function check(schema: unknown, value: unknown) {
  const doubts: string[] = []
  const text = schema === null || typeof schema === 'string' ? schema : JSON.stringify(schema)
  const result = schemaFrom(text, (why) => doubts.push(why))['~standard'].validate(
    value,
  ) as StandardSchemaV1.Result<unknown>
  return { issues: result.issues?.map(({ path, message }) => [path, message] as const), doubts }
}

describe('schemaFrom', () => {
  it('lets good payloads through and names the places of bad ones', () => {
    const schema = z.toJSONSchema(z.object({ items: z.array(z.object({ 'a/b~c': z.email() })), n: z.int().min(1) }))
    expect(check(schema, { items: [{ 'a/b~c': 'me@example.org' }], n: 1 })).toEqual({ issues: undefined, doubts: [] })
    const { issues } = check(schema, { items: [{ 'a/b~c': 'nobody' }], n: 0 })
    expect(issues?.map(([path]) => path)).toContainEqual(['items', 0, 'a/b~c'])
    expect(issues?.map(([path]) => path)).toContainEqual(['n'])
  })

  it('limits the number of issues', () => {
    const values = Array.from({ length: 100 }, () => 'x')
    expect(check({ type: 'array', items: { type: 'number' } }, values).issues?.length).toBeLessThanOrEqual(20)
  })

  it('lets everything through where there is no schema', () => {
    expect(check(null, { any: 'thing' })).toEqual({ issues: undefined, doubts: [] })
  })

  it.each([['{ no JSON'], [{ $ref: '#/$defs/missing' }], [{ type: 'string', pattern: '(' }]])(
    'says so where %j cannot be applied',
    (schema) => {
      const { issues, doubts } = check(schema, 'x')
      expect(issues).toBeUndefined()
      expect(doubts).toHaveLength(1)
    },
  )
})
