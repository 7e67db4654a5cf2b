// Lists that stand both in docs/ and in the code: error codes, events with their fields, counters, options with their
// defaults, boot rules.
import { describe, expect, it } from 'vitest'
import { clientDefaults, clientOptionNames, workerDefaults, workerOptionNames } from '../../src/core/config.ts'
import { claimOutcomes, counterNames } from '../../src/core/counters.ts'
import { durationMs, type Duration } from '../../src/core/duration.ts'
import { defineEffect, effectOf, type ResolvedEffect } from '../../src/core/effect.ts'
import { checkEffectWindows } from '../../src/core/effect-windows.ts'
import { errorCodes } from '../../src/core/errors.ts'
import { eventNames } from '../../src/core/events.ts'
import { sideEffectAnswers } from '../../src/core/handler.ts'
import { deadReasons } from '../../src/core/job.ts'
import { stripe } from '../../src/core/providers/payments.ts'
import { defaultRetryPolicy } from '../../src/core/retry-policy.ts'
import { checkWindows, windowRules, type Windows } from '../../src/core/windows.ts'
import { codeWords, readPage, tableRows } from './markdown-pages.ts'
import { SourceTypes } from './source-types.ts'

function firstWords(page: string, heading?: string): readonly string[] {
  return tableRows(readPage(page), heading).map(([name = '']) => codeWords(name)[0] ?? name)
}

describe('docs/errors.md', () => {
  it('has every code once', () => {
    expect(firstWords('docs/errors.md').toSorted()).toEqual(errorCodes.toSorted())
  })

  it('says for each when it comes and what to do', () => {
    const empty = tableRows(readPage('docs/errors.md')).filter((cells) => cells.length !== 3 || cells.includes(''))
    expect(empty).toEqual([])
  })
})

describe('docs/events.md', () => {
  const rows = tableRows(readPage('docs/events.md').split('\n## Counters')[0] ?? '')

  it('has every event once', () => {
    expect(rows.map(([name = '']) => codeWords(name)[0]).sort()).toEqual([...eventNames].sort())
  })

  it('names the fields of each event', () => {
    const documented = new Map(
      rows.map(([name = '', , fields = '']) => [codeWords(name)[0], codeWords(fields).toSorted()]),
    )
    const variants = new SourceTypes('src/core/events.ts').variants('ChokaQEvent', 'name')
    expect(documented).toEqual(new Map([...variants].map(([name, fields]) => [name, fields.toSorted()])))
  }, 60_000)

  it('has every counter once', () => {
    expect(firstWords('docs/events.md', 'Counters')).toEqual(counterNames)
  })
})

/** '`30s`' → 30000, '`1_000_000`' → 1000000; undefined where the cell is a text. */
function defaultOf(cell: string): number | undefined {
  const [word = ''] = codeWords(cell)
  const plain = word.replaceAll('_', '')
  if (/^[\d.]+$/.test(plain)) return Number(plain)
  return /^[\d.]+(ms|s|m|h|d)$/.test(word) ? durationMs(word as Duration, 'default') : undefined
}

describe('docs/configuration.md', () => {
  const page = readPage('docs/configuration.md')
  const client = ['storage', 'onEvent', 'runtime']
  const worker = ['chokaq', 'handlers', 'queues', 'middleware', 'name']

  it('has every option of the client and the worker', () => {
    expect(firstWords('docs/configuration.md', 'Client')).toEqual([...client, ...clientOptionNames])
    expect(firstWords('docs/configuration.md', 'Worker')).toEqual([...worker, ...workerOptionNames])
  })

  it('has their defaults', () => {
    for (const [heading, defaults] of [
      ['Client', clientDefaults],
      ['Worker', workerDefaults],
    ] as const) {
      const known = new Map<string, unknown>(Object.entries(defaults))
      for (const [name = '', cell = ''] of tableRows(page, heading)) {
        const option = codeWords(name)[0] ?? ''
        expect([option, defaultOf(cell)]).toEqual([option, known.get(option) ?? known.get(`${option}Ms`)])
      }
    }
  })

  it('has the defaults of retries', () => {
    const documented = Object.fromEntries(
      tableRows(page, 'Handler')
        .map(([name = '', cell = '']) => [codeWords(name)[0] ?? '', defaultOf(cell)] as const)
        .filter(([name]) => name.startsWith('retry.')),
    )
    const { attempts, lifetimeMs, baseMs, factor, capMs, jitter } = defaultRetryPolicy
    expect(documented).toEqual({
      'retry.attempts': attempts,
      'retry.for': lifetimeMs,
      'retry.backoff.base': baseMs,
      'retry.backoff.factor': factor,
      'retry.backoff.cap': capMs,
      'retry.backoff.jitter': jitter,
    })
  })

  it('has every option of an effect, of enqueue and of the SQLite storage', () => {
    const effect = new SourceTypes('src/core/effect.ts').members('EffectDefinition')
    const enqueue = new SourceTypes('src/engine/enqueue/enqueue-options.ts').members('EnqueueOptions')
    const sqlite = new SourceTypes('src/storage/sqlite/index.ts').members('SqliteOptions')
    expect(firstWords('docs/configuration.md', 'Effect')).toEqual(effect)
    expect(firstWords('docs/configuration.md', 'Enqueue')).toEqual(enqueue)
    expect(firstWords('docs/configuration.md', 'SQLite')).toEqual(sqlite)
  }, 60_000)

  it('has every boot rule, and whether it refuses or warns', () => {
    const documented = tableRows(page, 'Boot checks').map(([rule = '', acts]) => [codeWords(rule)[0], acts])
    // No rule holds for windows that are no numbers.
    const broken = new Proxy({}, { get: (_, name) => (name === 'keepsCompleted' ? true : Number.NaN) }) as Windows
    const keyed = effectOf(defineEffect({ name: 'charge', provider: stripe, run: async () => undefined }))
    const asked = { ...keyed, reconcile: async () => 'unknown' as const } as ResolvedEffect
    const findings = [
      checkWindows(broken, 'worker'),
      checkEffectWindows(asked, broken, 'worker'),
      checkEffectWindows({ ...asked, reconcile: undefined }, broken, 'worker'),
    ]
    expect(documented.map(([rule]) => rule)).toEqual(windowRules)
    const found = findings.flatMap(({ refusals, warnings }) => [
      ...refusals.map(({ rule }) => [rule, 'refuses'] as const),
      ...warnings.map(({ rule }) => [rule, 'warns'] as const),
    ])
    expect(documented).toEqual([...new Map(found)])
  })
})

describe('docs/keys-and-claims.md', () => {
  it('has every outcome of a claim', () => {
    expect(firstWords('docs/keys-and-claims.md', 'The seven outcomes of a claim')).toEqual(claimOutcomes)
  })
})

describe('docs/idempotent-handlers.md', () => {
  it('has every answer to where the key is enforced', () => {
    const answers = firstWords('docs/idempotent-handlers.md', 'Where is the key enforced?')
    expect(answers).toEqual(Object.keys(sideEffectAnswers))
  })

  it('has every reason of the DLQ', () => {
    expect(firstWords('docs/idempotent-handlers.md', 'When a job is dead')).toEqual(deadReasons)
  })
})
