import { expect, test } from 'vitest'
import { jsonPath, type PathSegment } from './json-path.ts'

test.each<[readonly PathSegment[], string]>([
  [[], '$'],
  [['amount'], '$.amount'],
  [['items', 2, 'id'], '$.items[2].id'],
  [['größe', '_x', '$y'], '$.größe._x.$y'],
  [['odd key', '1', ''], '$["odd key"]["1"][""]'],
  [['a"b', '\ud800'], '$["a\\"b"]["\\ud800"]'],
  [['__proto__'], '$.__proto__'],
  [['x'.repeat(50)], `$.${'x'.repeat(40)}…`],
])('%o', (segments, text) => {
  expect(jsonPath(segments)).toBe(text)
})

test('a deep path shows its ends', () => {
  const path = jsonPath(Array.from({ length: 200 }, (_, i) => i))
  expect(path).toBe('$[0][1][2][3][4][5][6][7][8][9] … [190][191][192][193][194][195][196][197][198][199]')
})
