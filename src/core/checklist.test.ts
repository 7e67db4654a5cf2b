import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checklistRow } from './checklist.ts'
import { resolveClientConfig, resolveWorkerConfig } from './config.ts'
import { defineJob } from './contract.ts'
import { defineHandler, handlerOf, type Handler } from './handler.ts'

const row = (handler: Handler) => checklistRow(handlerOf(handler), resolveWorkerConfig({}), resolveClientConfig({}))
const payload = z.object({ id: z.string() })
const run = async () => undefined
const plain = defineJob({ type: 'plain.v1', payload })
const keyed = defineJob({ type: 'pay.v2', payload, key: (p) => p.id, duplicateWindow: '60d', allowRaw: true })
const byId = defineJob({ type: 'once.v1', payload, key: 'job-id' })

describe('checklistRow', () => {
  it('shows a handler without a key', () => {
    expect(row(defineHandler(plain, { sideEffects: 'none', run }))).toEqual({
      type: 'plain.v1',
      key: 'none',
      keyScope: undefined,
      sideEffects: 'none',
      enforcedBy: 'it has no side effects',
      duplicateWindowMs: undefined,
      whenInterrupted: 'resume',
      allowRaw: false,
      level: 'at least once',
      markerLifeMs: undefined,
    })
  })

  it('shows the key, its scope over all versions, and how long it is kept', () => {
    const { key, keyScope, duplicateWindowMs, markerLifeMs, allowRaw } = row(
      defineHandler(keyed, { sideEffects: 'unique-constraint', whenInterrupted: 'resume', run }),
    )
    expect({ key, keyScope, allowRaw }).toEqual({ key: 'payload', keyScope: 'pay', allowRaw: true })
    expect(markerLifeMs).toBeGreaterThan(duplicateWindowMs ?? Infinity)
  })

  it('has no duplicate window where each enqueue is its own operation', () => {
    const shown = row(defineHandler(byId, { sideEffects: 'unguarded', whenInterrupted: 'review', run }))
    expect(shown).toMatchObject({ key: 'job-id', duplicateWindowMs: undefined })
    expect(shown.markerLifeMs).toBeGreaterThan(0)
  })

  it('gives the reason of a repeatable handler', () => {
    expect(row(defineHandler(plain, { sideEffects: 'repeatable', because: 'PUT is idempotent', run }))).toMatchObject({
      enforcedBy: 'PUT is idempotent',
      level: 'at least once',
    })
  })

  it.each([
    ['same-transaction', 'resume', 'exactly once (same database)'],
    ['same-transaction', 'review', 'at most once + review'],
    ['unique-constraint', 'resume', 'at least once'],
    ['read-before-write', 'resume', 'at least once'],
    ['read-before-write', 'review', 'at most once + review'],
  ] as const)('of %s and %s is %s', (sideEffects, whenInterrupted, level) => {
    expect(row(defineHandler(keyed, { sideEffects, whenInterrupted, run })).level).toBe(level)
  })
})
