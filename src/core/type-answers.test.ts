import { describe, expect, it } from 'vitest'
import { listAnswered, typeAnswers } from './type-answers.ts'

describe('the answers of a type that some version of the code wrote', () => {
  it.each(['', '{', 'null', '7', '"text"', '{"effects":null}', '{"effects":{}}'])('says nothing of %j', (answers) => {
    expect(listAnswered(typeAnswers({ answers }), 'effects')).toEqual([])
  })

  it('gives each effect fields, whatever stands in its place', () => {
    const answers = JSON.stringify({ effects: [null, 7, { name: 'charge' }] })
    expect(listAnswered(typeAnswers({ answers }), 'effects')).toEqual([{}, {}, { name: 'charge' }])
  })

  it('says nothing of a type that nobody registered', () => {
    expect(typeAnswers(undefined)).toEqual({})
  })
})
