import { describe, expect, it } from 'vitest'
import { CappedTag } from '../../src/otel/capped-tags.ts'

describe('a capped tag', () => {
  it('keeps the first values and calls the rest other', () => {
    const tag = new CappedTag(2)
    expect(['a', 'b', 'c', 'a', 'd', 'b'].map((value) => tag.of(value))).toEqual(['a', 'b', 'other', 'a', 'other', 'b'])
  })

  it.each(['', '   ', undefined])('calls %j unknown, outside of the count', (value) => {
    const tag = new CappedTag(1)
    expect([tag.of(value), tag.of('a'), tag.of('b')]).toEqual(['unknown', 'a', 'other'])
  })

  it('cuts values at 128 characters, never through one', () => {
    const tag = new CappedTag(10)
    expect(tag.of('x'.repeat(500))).toBe('x'.repeat(128))
    expect(tag.of('x'.repeat(127) + '😀')).toBe('x'.repeat(127))
  })

  it('takes values that are equal once cut for one', () => {
    const tag = new CappedTag(1)
    expect([tag.of('x'.repeat(200)), tag.of('x'.repeat(300)), tag.of(' ' + 'x'.repeat(128))]).toEqual(
      Array.from({ length: 3 }, () => 'x'.repeat(128)),
    )
  })
})
