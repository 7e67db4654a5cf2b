/** Arrays as the database writes them. As text, because not every driver of a user's transaction knows arrays. */

/** For `$n::text::type[]`, with a type whose elements are numbers or text. */
export function arrayText(values: readonly (string | number | null)[]): string {
  return `{${values.map(elementText).join(',')}}`
}

function elementText(value: string | number | null): string {
  if (value === null) return 'NULL'
  return typeof value === 'number' ? String(value) : `"${value.replace(/["\\]/g, '\\$&')}"`
}
