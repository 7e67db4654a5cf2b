/**
 * Cells of a CSV as spreadsheets read them. One that begins like a formula gets an apostrophe in front: a text of a job
 * must not become something that runs on the desk of whoever opens the export.
 */
export function csvLine(cells: readonly (string | number | boolean | null)[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`
}

export function csvCell(value: string | number | boolean | null): string {
  if (value === null) return ''
  if (typeof value !== 'string') return String(value)
  // Blanks in front do not keep every spreadsheet from reading a formula.
  const isFormula = /^[\s\u00a0\ufeff]*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20|%]/.test(value)
  const text = isFormula ? `'${value}` : value
  return /[",\r\n\t'; ]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
