/** Short descriptions of values of any kind, for messages. Nothing here throws, whatever the value is. */

const maxShownChars = 60

/** The `Object.prototype.toString` tag, such as 'Date' or 'Map'; works across realms, where `instanceof` does not. */
export function tagOf(value: unknown): string {
  try {
    return Object.prototype.toString.call(value).slice(8, -1)
  } catch {
    return 'Object' // a proxy whose traps throw
  }
}

/** What kind of value it is, with its article, such as 'a number', 'an array', 'a Date'; never the value itself. */
export function kindOf(value: unknown): string {
  switch (typeof value) {
    case 'undefined':
      return 'undefined'
    case 'string':
      return 'a text'
    case 'bigint':
      return 'a BigInt'
    case 'number':
      return Number.isNaN(value) ? 'NaN' : 'a number'
    case 'object':
      return value === null ? 'null' : kindOfObject(tagOf(value))
    default:
      return `a ${typeof value}`
  }
}

function kindOfObject(tag: string): string {
  if (tag === 'Array') return 'an array'
  if (tag === 'Object') return 'an object'
  const shown = tag.length > maxShownChars ? `${tag.slice(0, maxShownChars)}…` : tag
  return `${/^[AEIOU]/.test(shown) ? 'an' : 'a'} ${shown}`
}

/** The value itself where it is short (numbers, booleans, quoted and cut texts), else its kind. */
export function shortValue(value: unknown): string {
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value)
  if (typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return quoted(value)
  return kindOf(value)
}

/** A text in double quotes on one line, cut to 60 characters. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > maxShownChars ? `${text.slice(0, maxShownChars)}…` : text)
}
