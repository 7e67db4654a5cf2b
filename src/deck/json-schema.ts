/**
 * A Standard Schema from the JSON Schema that a worker stored with its type. It lets a payload be refused here that the
 * worker would refuse later; the worker still has the last word, because not every schema fits into JSON Schema.
 */
import { Validator, type OutputUnit, type Schema } from '@cfworker/json-schema'
import type { StandardSchemaV1 } from '@standard-schema/spec'

const maxIssueCount = 20
/** They say only that something below them is wrong. */
const containers = new Set([
  'properties',
  'items',
  'prefixItems',
  'additionalProperties',
  '$ref',
  'allOf',
  'patternProperties',
])

/** `cannotCheck` hears why a payload could not be checked; it is let through then. */
export function schemaFrom(jsonSchema: string | null, cannotCheck: (why: string) => void): StandardSchemaV1 {
  const validator = jsonSchema === null ? undefined : validatorOf(jsonSchema, cannotCheck)
  const validate = (value: unknown): StandardSchemaV1.Result<unknown> => {
    try {
      const result = validator?.validate(value)
      if (result === undefined || result.valid) return { value }
      return { issues: issuesOf(result.errors) }
    } catch (thrown) {
      // A reference that leads nowhere or a pattern that is no pattern shows only when it is met.
      cannotCheck(thrown instanceof Error ? thrown.message : String(thrown))
      return { value }
    }
  }
  return { '~standard': { version: 1, vendor: 'chokaq', validate } }
}

function validatorOf(jsonSchema: string, cannotCheck: (why: string) => void): Validator | undefined {
  try {
    return new Validator(JSON.parse(jsonSchema) as Schema, '2020-12', false)
  } catch (thrown) {
    cannotCheck(thrown instanceof Error ? thrown.message : String(thrown))
    return undefined
  }
}

function issuesOf(errors: readonly OutputUnit[]): readonly StandardSchemaV1.Issue[] {
  const precise = errors.filter(({ keyword }) => !containers.has(keyword))
  return (precise.length > 0 ? precise : errors)
    .slice(0, maxIssueCount)
    .map(({ instanceLocation, error }) => ({ message: error, path: pathOf(instanceLocation) }))
}

/** '#/items/0/name' → ['items', 0, 'name'] */
function pathOf(pointer: string): readonly (string | number)[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => {
      const text = decoded(part).replaceAll('~1', '/').replaceAll('~0', '~')
      return /^\d+$/.test(text) ? Number(text) : text
    })
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
