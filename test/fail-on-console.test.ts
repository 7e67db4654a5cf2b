import { describe, expect, it } from 'vitest'
import { allowConsole, failOnUnexpectedOutput } from './fail-on-console.ts'

describe('console output in a test', () => {
  it('fails it', () => {
    console.log('left over', 1)
    expect(failOnUnexpectedOutput).toThrow('console.log: left over 1')
  })

  it('is collected when the test allows it', () => {
    const lines = allowConsole('warn')
    console.warn('expected')
    expect(lines).toEqual(['expected'])
    expect(failOnUnexpectedOutput).not.toThrow()
  })
})
