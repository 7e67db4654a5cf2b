import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { contractOf, defineJob, isJob } from './contract.ts'
import { defineHandler, handlerOf, isHandler, sideEffectAnswers } from './handler.ts'

const payload = z.object({ id: z.string() })
const run = async (): Promise<void> => undefined
const plain = defineJob({ type: 'plain.v1', payload })
const keyed = defineJob({ type: 'keyed.v1', payload, key: (p) => p.id, duplicateWindow: '1d' })

describe('defineJob', () => {
  test('gives a frozen job whose contract has the defaults', () => {
    expect(Object.isFrozen(plain)).toBe(true)
    expect(contractOf(plain)).toMatchObject({ queue: 'default', key: 'none', allowRaw: false, duplicateWindowMs: 0 })
    expect(contractOf(keyed)).toMatchObject({ keyScope: 'keyed', duplicateWindowMs: 86_400_000 })
    expect(isJob(plain)).toBe(true)
    expect(isJob({ ...plain })).toBe(false)
  })

  test.each<[string, object, RegExp]>([
    ['a missing type', { payload }, /type must be/],
    ['a type with a space', { type: 'a b', payload }, /type must be/],
    ['a type of 129 characters', { type: 'a'.repeat(129), payload }, /1 to 128/],
    ['a missing payload', { type: 'a' }, /Standard Schema/],
    ['a payload that is no schema', { type: 'a', payload: {} }, /Standard Schema/],
    ['a result that is no schema', { type: 'a', payload, result: {} }, /result must be/],
    ['a key that is a text', { type: 'a', payload, key: 'id' }, /key must be a function/],
    ['a key without its window', { type: 'a', payload, key: () => 'k' }, /duplicateWindow/],
    ['a sameWhen that is no function', { type: 'a', payload, sameWhen: 'x' }, /sameWhen/],
    ['an empty queue', { type: 'a', payload, queue: '' }, /queue must be/],
    ['a misspelt field', { type: 'a', payload, duplicateWindo: '1d' }, /duplicateWindow/],
  ])('refuses %s', (_what, definition, text) => {
    const make = (): unknown => defineJob(definition as never)
    expect(make).toThrow(expect.objectContaining({ code: 'CHOKAQ_CONTRACT_INVALID' }) as Error)
    expect(make).toThrow(text)
  })
})

describe('defineHandler', () => {
  test('gives a frozen handler with its answers', () => {
    const handler = defineHandler(keyed, { sideEffects: 'unique-constraint', whenInterrupted: 'review', run })
    expect(Object.isFrozen(handler)).toBe(true)
    expect(handlerOf(handler)).toMatchObject({ whenInterrupted: 'review', onDuplicate: 'skip', keepsCompleted: true })
    expect(isHandler(handler)).toBe(true)
    expect(handlerOf(defineHandler(plain, { sideEffects: 'none', run })).whenInterrupted).toBe('resume')
  })

  test('lists the answers where the question of side effects is left out', () => {
    const make = (): unknown => defineHandler(plain, { run } as never)
    expect(make).toThrow(/sideEffects is missing/)
    for (const answer of Object.keys(sideEffectAnswers)) expect(make).toThrow(`'${answer}'`)
  })

  test.each<[string, typeof plain | typeof keyed, object, RegExp]>([
    ['an unknown answer', plain, { sideEffects: 'some' }, /"some"/],
    ['an answer from the prototype', plain, { sideEffects: 'constructor' }, /"constructor"/],
    [
      'a keyed answer without a key',
      plain,
      { sideEffects: 'unique-constraint', whenInterrupted: 'resume' },
      /needs a keyed/,
    ],
    ['repeatable without because', plain, { sideEffects: 'repeatable' }, /because/],
    ['a missing whenInterrupted', keyed, { sideEffects: 'read-before-write' }, /'resume'.*'review'/s],
    ['unguarded that resumes', keyed, { sideEffects: 'unguarded', whenInterrupted: 'resume' }, /only whenInterrupted/],
    ['none with whenInterrupted', plain, { sideEffects: 'none', whenInterrupted: 'review' }, /it resumes/],
    ['a wrong onDuplicate', plain, { sideEffects: 'none', onDuplicate: 'wait' }, /'skip' or 'defer'/],
    ['a wrong keep', plain, { sideEffects: 'none', keep: { completed: 5 } }, /completed: 0/],
    ['a misspelt field', plain, { sideEffects: 'none', timeOut: '1s' }, /timeout/],
    ['a missing run', plain, { sideEffects: 'none', run: undefined }, /run must be a function/],
  ])('refuses %s', (_what, job, definition, text) => {
    const make = (): unknown => defineHandler(job, { run, ...definition } as never)
    expect(make).toThrow(expect.objectContaining({ code: 'CHOKAQ_HANDLER_INVALID' }) as Error)
    expect(make).toThrow(text)
  })

  test('refuses a job that defineJob did not make, and what is no handler', () => {
    expect(() => defineHandler({ ...plain }, { sideEffects: 'none', run })).toThrow(/defineJob/)
    expect(() => handlerOf({ job: plain })).toThrow(/defineHandler/)
    expect(() => handlerOf(undefined as never)).toThrow()
  })
})
