import { describe, expect, it } from 'vitest'
import { counted, fieldLines, table, type Column } from './table.ts'

interface Row {
  readonly name: string | null
  readonly count: number
}
const columns: readonly Column<Row>[] = [
  { title: 'NAME', of: (row) => row.name },
  { title: 'COUNT', of: (row) => row.count, align: 'right' },
]

describe('table', () => {
  it('aligns by what a terminal shows, wide characters included', () => {
    const rows = [
      { name: '🦊', count: 1 },
      { name: '日本', count: 20 },
      { name: null, count: 300 },
    ]
    expect(table(columns, rows)).toBe(['NAME  COUNT', '🦊        1', '日本     20', '—       300'].join('\n'))
  })

  it('makes each cell one short line', () => {
    const [, row = ''] = table(columns, [{ name: `\u001b[2J${'x'.repeat(100)}\nforged`, count: 1 }]).split('\n')
    expect(row).toMatch(/^x{59}… +1$/)
  })
})

describe('fieldLines', () => {
  it('leaves out what is not there', () => {
    expect(
      fieldLines([
        ['a', 1],
        ['long name', 'x\ny'],
        ['gone', null],
        ['empty', ''],
      ]),
    ).toBe('a          1\nlong name  x y')
  })
})

describe('counted', () => {
  it('knows one from many', () => {
    expect([0, 1, 2].map((count) => counted(count, 'job'))).toEqual(['0 jobs', '1 job', '2 jobs'])
  })
})
