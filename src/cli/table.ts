import width from 'fast-string-width'
import { oneLine } from './terminal-text.ts'

export interface Column<Row> {
  readonly title: string
  readonly of: (row: Row) => string | number | null | undefined
  readonly align?: 'right'
}

/** Columns as wide as their widest cell, two blanks apart. Cells are data: each becomes one harmless line. */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const texts = rows.map((row) => columns.map((column) => cell(column.of(row))))
  const all = [columns.map((column) => column.title), ...texts]
  const widths = columns.map((_, index) => Math.max(...all.map((line) => width(line[index] ?? ''))))
  return all
    .map((line) =>
      columns
        .map((column, index) => {
          const text = line[index] ?? ''
          const fill = ' '.repeat((widths[index] ?? 0) - width(text))
          return column.align === 'right' ? fill + text : text + fill
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

const maxCellChars = 60

function cell(value: string | number | null | undefined): string {
  if (value === null || value === undefined || value === '') return '—'
  const text = oneLine(String(value))
  const characters = [...text]
  return characters.length > maxCellChars ? `${characters.slice(0, maxCellChars - 1).join('')}…` : text
}

/** Names and values, one a line, the values below each other. */
export function fieldLines(
  fields: readonly (readonly [name: string, value: string | number | null | undefined])[],
): string {
  const shown = fields.filter(([, value]) => value !== null && value !== undefined && value !== '')
  const nameWidth = Math.max(0, ...shown.map(([name]) => name.length))
  return shown.map(([name, value]) => `${name.padEnd(nameWidth)}  ${oneLine(String(value))}`).join('\n')
}

/** '1 dead job', '2 dead jobs' */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}
