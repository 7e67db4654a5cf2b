import { describe, expect, it } from 'vitest'
import { effectsAnswered, typeAnswers } from './type-answers.ts'

describe('the answers of a type that some version of the code wrote', () => {
  it.each(['', '{', 'null', '7', '"text"', '{"effects":null}', '{"effects":{}}'])('says nothing of %j', (answers) => {
    expect(effectsAnswered(typeAnswers({ answers }))).toEqual([])
  })

  it('gives each effect fields, whatever stands in its place', () => {
    const answers = JSON.stringify({ effects: [null, 7, { name: 'charge' }] })
    expect(effectsAnswered(typeAnswers({ answers }))).toEqual([{}, {}, { name: 'charge' }])
  })

  it('says nothing of a type that nobody registered', () => {
    expect(typeAnswers(undefined)).toEqual({})
  })
})
