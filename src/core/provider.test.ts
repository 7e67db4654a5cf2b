import { describe, expect, it } from 'vitest'
import type { ChokaQError } from './errors.ts'
import { defineProvider, noKey, renderKey, type ProviderDefinition } from './provider.ts'

const acme: ProviderDefinition = {
  name: 'acme',
  keyFormat: { maxLength: 64 },
  dedupeWindow: '24h',
  onProviderError: 'reexecuted',
}
const uuid = '0123abcd-4567-89ab-cdef-0123456789ab'

function refusal(change: object): string {
  try {
    defineProvider({ ...acme, ...change })
    return 'accepted'
  } catch (error) {
    return (error as ChokaQError).message
  }
}

describe('defineProvider', () => {
  it('describes and freezes', () => {
    const provider = defineProvider(acme)
    expect(provider).toEqual({
      name: 'acme',
      keyed: {
        format: { minLength: 1, maxLength: 64, form: 'uuid' },
        windowMs: 86_400_000,
        onProviderError: 'reexecuted',
      },
      callTimeoutMs: 120_000,
      classify: undefined,
    })
    expect([Object.isFrozen(provider), Object.isFrozen(provider.keyed)]).toEqual([true, true])
  })

  it('knows a provider that never forgets', () => {
    expect(defineProvider({ ...acme, dedupeWindow: 'forever' }).keyed?.windowMs).toBe(Infinity)
  })

  it.each<[string, object, string]>([
    ['an unknown field', { dedupeWindows: '1h' }, 'dedupeWindow'],
    ['a blank name', { name: ' ' }, 'name must be a text'],
    ['no name', { name: undefined }, 'name must be a text'],
    ['keys that are too short for a UUID', { keyFormat: { maxLength: 35 } }, "a 'uuid' key has 36"],
    ['keys that are too short for hex', { keyFormat: { maxLength: 31, form: 'hex' } }, "a 'hex' key has 32"],
    ['keys that must be longer', { keyFormat: { minLength: 40, maxLength: 64 } }, "a 'uuid' key has 36"],
    ['a length that is no number', { keyFormat: {} }, "a 'uuid' key has 36"],
    ['a form that does not exist', { keyFormat: { maxLength: 64, form: 'base64' } }, "'uuid' or 'hex'"],
    ['no key format', { keyFormat: undefined }, 'keyFormat'],
    ['no word on errors', { onProviderError: undefined }, "'replayed' or 'reexecuted'"],
    ['a classifier that is no function', { classify: 'no' }, 'classify must be a function'],
  ])('refuses %s', (_name, change, text) => {
    const message = refusal(change)
    expect(message).toMatch(/^The provider ".*" is not valid: /)
    expect(message).toContain(text)
  })

  it.each([{ dedupeWindow: '0s' }, { dedupeWindow: 'never' }, { dedupeWindow: undefined }, { callTimeout: '0s' }])(
    'refuses the duration in %o',
    (change) => {
      expect(refusal(change)).toMatch(/^(dedupeWindow|callTimeout) of acme is .*(no duration|at least 1ms)/)
    },
  )
})

describe('noKey', () => {
  it('describes a provider whose repeat is a second action', () => {
    expect(noKey('ses')).toEqual({ name: 'ses', keyed: undefined, callTimeoutMs: 120_000, classify: undefined })
    expect(noKey('ses', { callTimeout: '10s' }).callTimeoutMs).toBe(10_000)
  })
})

describe('renderKey', () => {
  it('gives the same bits as a UUID or as hex', () => {
    expect(renderKey(defineProvider(acme), uuid)).toBe(uuid)
    expect(renderKey(defineProvider({ ...acme, keyFormat: { maxLength: 32, form: 'hex' } }), uuid)).toBe(
      '0123abcd456789abcdef0123456789ab',
    )
    expect(renderKey(noKey('ses'), uuid)).toBe(uuid)
  })
})
