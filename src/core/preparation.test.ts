import { createHash } from 'node:crypto'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { contractOf, defineJob } from './contract.ts'
import { keyedFields, payloadText, readPayload, validate, whatMustBeSame, type PreparedPayload } from './preparation.ts'

const hashing = {
  sha256: (text: string) => createHash('sha256').update(text).digest('hex'),
  byteLength: (text: string) => Buffer.byteLength(text),
}
const job = { id: 'j1', tenant: undefined }
const trimmed = z.object({ id: z.string().trim(), at: z.iso.datetime().pipe(z.coerce.date()).optional() })
const plain = contractOf(defineJob({ type: 'plain.v1', payload: trimmed }))
const keyed = contractOf(
  defineJob({ type: 'keyed.v2', payload: trimmed, key: (p) => p.id, duplicateWindow: '1d', sameWhen: (p) => p.id }),
)

function schemaOf(answer: () => unknown): StandardSchemaV1 {
  const validateAny = (() => answer()) as StandardSchemaV1['~standard']['validate']
  return { '~standard': { version: 1, vendor: 'test', validate: validateAny } }
}

describe('a payload', () => {
  test('is stored as it was given, and read through the schema', () => {
    const text = payloadText(plain, { id: ' a ', at: '2026-01-01T00:00:00Z' }, 1_000, hashing)
    expect(text).toBe('{"id":" a ","at":"2026-01-01T00:00:00Z"}')
    const read = readPayload(plain, text) as PreparedPayload
    expect(read.input).toEqual({ id: ' a ', at: '2026-01-01T00:00:00Z' })
    expect(read.output).toEqual({ id: 'a', at: new Date('2026-01-01T00:00:00Z') })
  })

  test('is refused with the paths of its issues, at most 20', () => {
    expect(() => readPayload(plain, '{}')).toThrow(/\$\.id/)
    const many = contractOf(defineJob({ type: 'many.v1', payload: z.array(z.number()) }))
    const text = JSON.stringify(Array<string>(50).fill('x'))
    expect(() => readPayload(many, text)).toThrow(
      expect.objectContaining({ details: expect.objectContaining({}) as object }) as Error,
    )
    try {
      void readPayload(many, text)
    } catch (error) {
      const { issues } = (error as { details: { issues: string[] } }).details
      expect(issues).toHaveLength(20)
      expect(issues[3]).toMatch(/^\$\[3\]: /)
    }
  })

  test('that is no JSON is a SyntaxError', () => {
    expect(() => readPayload(plain, '{')).toThrow(SyntaxError)
  })

  test('a schema that changes its input in place changes no other copy', () => {
    const mutating: StandardSchemaV1 = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate(value) {
          delete (value as { id?: string }).id
          return { value }
        },
      },
    }
    const contract = contractOf(defineJob({ type: 'm.v1', payload: mutating }))
    expect((readPayload(contract, '{"id":"a"}') as PreparedPayload).input).toEqual({ id: 'a' })
  })
})

describe('validate', () => {
  test('takes a schema that throws, rejects, or answers with nothing as an issue', async () => {
    const throwing = (): never => {
      throw new RangeError('broken')
    }
    expect(validate(schemaOf(throwing), 1)).toMatchObject({ issues: [expect.stringMatching(/broken/) as string] })
    for (const answer of [() => Promise.reject(new Error('broken')), () => Promise.resolve(undefined)]) {
      expect((await validate(schemaOf(answer), 1)).issues).toHaveLength(1)
    }
    expect(
      (
        await validate(
          schemaOf(() => undefined),
          1,
        )
      ).issues,
    ).toHaveLength(1)
  })

  test('an empty list of issues is a refusal all the same', async () => {
    expect(
      (
        await validate(
          schemaOf(() => ({ issues: [] })),
          1,
        )
      ).issues,
    ).toEqual(['$: refused without a reason'])
  })
})

describe('the key', () => {
  const read = (text: string): PreparedPayload => readPayload(keyed, text) as PreparedPayload

  test('is that of the output, under its scope, with its readable start', () => {
    const { key, fingerprint } = keyedFields(keyed, read('{"id":" a "}'), job, hashing)
    expect(key).toMatchObject({ prefix: 'a', scope: 'keyed', hash: expect.stringMatching(/^[0-9a-f]{64}$/) as string })
    expect(keyedFields(keyed, read('{"id":"a"}'), job, hashing)).toEqual({ key, fingerprint })
  })

  test('is another one for another tenant', () => {
    const of = (tenant: string | undefined): unknown =>
      keyedFields(keyed, read('{"id":"a"}'), { id: 'j', tenant }, hashing).key?.hash
    expect(new Set([of(undefined), of('a'), of('b')]).size).toBe(3)
  })

  test("is the job's id under 'job-id', and none without a key", () => {
    const each = contractOf(defineJob({ type: 'each.v1', payload: z.object({}), key: 'job-id' }))
    const any = readPayload(each, '{}') as PreparedPayload
    expect(keyedFields(each, any, job, hashing).key?.prefix).toBe('j1')
    expect(keyedFields(plain, any, job, hashing)).toEqual({ key: undefined, fingerprint: undefined })
  })

  test.each<[string, () => unknown, string]>([
    ['is empty', () => '', 'CHOKAQ_EMPTY_KEY'],
    ['is undefined', () => undefined, 'CHOKAQ_EMPTY_KEY'],
    ['is a number', () => 7, 'CHOKAQ_EMPTY_KEY'],
    ['is an object', () => ({}), 'CHOKAQ_EMPTY_KEY'],
    ['is another one each time', () => Math.random().toString(), 'CHOKAQ_CONTRACT_INVALID'],
    [
      'throws',
      () => {
        throw new Error('no')
      },
      'CHOKAQ_KEY_THROWN',
    ],
  ])('that %s is refused', (_what, key, code) => {
    const contract = contractOf(
      defineJob({ type: 'k.v1', payload: z.object({}), key: key as () => string, duplicateWindow: '1d' }),
    )
    const any = readPayload(contract, '{}') as PreparedPayload
    expect(() => keyedFields(contract, any, job, hashing)).toThrow(expect.objectContaining({ code }) as Error)
  })

  test('sameWhen says what must be equal; without it the whole input', () => {
    expect(whatMustBeSame(keyed, read('{"id":" a ","at":"2026-01-01T00:00:00Z"}'))).toBe('a')
    const all = contractOf(defineJob({ type: 'a.v1', payload: trimmed, key: (p) => p.id, duplicateWindow: '1d' }))
    expect(whatMustBeSame(all, read('{"id":" a "}'))).toEqual({ id: ' a ' })
    const broken = contractOf(
      defineJob({ type: 'b.v1', payload: trimmed, key: (p) => p.id, duplicateWindow: '1d', sameWhen: () => 1n }),
    )
    expect(() => whatMustBeSame(broken, read('{"id":"a"}'))).toThrow(/sameWhen function/)
  })
})
