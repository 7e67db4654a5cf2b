import { describe, expect, test } from 'vitest'
import { suggestion, unknownKeyProblem } from './did-you-mean.ts'

const known = ['concurrency', 'queues', 'timeout', 'for']

describe('unknownKeyProblem', () => {
  test('says nothing when all keys are known', () => {
    expect(unknownKeyProblem({ queues: 1, for: undefined }, known, 'createWorker')).toBeUndefined()
    expect(unknownKeyProblem({}, known, 'createWorker')).toBeUndefined()
  })

  test.each([
    ['concurency', '"concurrency"'], // a letter left out
    ['concurrrency', '"concurrency"'], // one too many
    ['cnocurrency', '"concurrency"'], // two swapped
    ['concurrancy', '"concurrency"'], // one replaced
    ['Concurrency', '"concurrency"'], // case
    ['time_out', '"timeout"'],
    ['fro', '"for"'],
  ])('%s is meant as %s', (key, meant) => {
    expect(unknownKeyProblem({ [key]: 1 }, known, 'createWorker')).toBe(
      `unknown option "${key}" in createWorker; did you mean ${meant}?`,
    )
  })

  test.each(['xyz', 'colour', 'c', '', 'constructor', '\u0000'])(
    '%j is near to nothing: all known are listed',
    (key) => {
      expect(unknownKeyProblem({ [key]: 1 }, known, 'createWorker')).toBe(
        `unknown option ${JSON.stringify(key)} in createWorker; known: concurrency, queues, timeout, for`,
      )
    },
  )

  test('looks at own keys only, and a key called __proto__ is one', () => {
    const inherited = Object.create({ foreign: 1 }) as object
    expect(unknownKeyProblem(inherited, known, 'x')).toBeUndefined()
    const own = JSON.parse('{"__proto__":1}') as object
    expect(unknownKeyProblem(own, known, 'x')).toMatch(/^unknown option "__proto__" in x/)
  })

  test('a huge key is cut and costs nothing', () => {
    const problem = unknownKeyProblem({ ['x'.repeat(1_000_000)]: 1 }, known, 'x') ?? ''
    expect(problem.length).toBeLessThan(200)
  })
})

test('the nearest of several wins', () => {
  expect(suggestion('basse', ['bases', 'base'])).toBe('did you mean "bases"?')
  expect(suggestion('caps', ['cape', 'cap'])).toBe('did you mean "cape"?')
})

test('where nothing is known, it says so', () => {
  expect(suggestion('x', [])).toBe('nothing is known there')
})
