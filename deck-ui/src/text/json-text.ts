/** JSON as people read and write it here. */
export function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

export interface JsonTrouble {
  readonly message: string
  readonly line: number
  readonly column: number
}

/** Where a text stops being JSON; undefined where it is JSON. Engines word and place the error differently. */
export function jsonTrouble(text: string): JsonTrouble | undefined {
  if (text.trim() === '') return { message: 'There is nothing here', line: 1, column: 1 }
  try {
    JSON.parse(text)
    return undefined
  } catch (error) {
    const full = error instanceof Error ? error.message : String(error)
    const message = full.replace(/^JSON\.parse: /, '').replace(/,? *(in JSON )?(at|\(|\.\.\.|, ").*$/s, '')
    return { message, ...placeOf(full, text) }
  }
}

function placeOf(message: string, text: string): { readonly line: number; readonly column: number } {
  const named = /line (\d+) column (\d+)/.exec(message)
  if (named !== null) return { line: Number(named[1]), column: Number(named[2]) }
  const position = /position (\d+)/.exec(message)
  return placeAt(text, position === null ? firstBadEnd(text) : Number(position[1]))
}

export function placeAt(text: string, position: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, position)
  const line = before.split('\n').length
  return { line, column: position - before.lastIndexOf('\n') }
}

/**
 * Engines that quote the place instead of counting it: the longest start of the text that is the start of some JSON ends
 * there. A text that was only cut off fails at its end.
 */
function firstBadEnd(text: string): number {
  let low = 0
  let high = text.length
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (isStartOfJson(text.slice(0, middle))) low = middle
    else high = middle - 1
  }
  return low
}

function isStartOfJson(start: string): boolean {
  try {
    JSON.parse(start)
    return true
  } catch (error) {
    return error instanceof Error && /end of|unterminated|EOF/i.test(error.message)
  }
}

/** Paths of strings that stand for a value the server hides. */
export function redactedPaths(text: string): readonly string[] {
  const found: string[] = []
  const walk = (value: unknown, path: string): void => {
    if (value === '[redacted]') found.push(path)
    else if (Array.isArray(value)) value.forEach((one, at) => walk(one, `${path}[${at}]`))
    else if (typeof value === 'object' && value !== null) {
      for (const [name, one] of Object.entries(value)) walk(one, path === '' ? name : `${path}.${name}`)
    }
  }
  try {
    walk(JSON.parse(text), '')
  } catch {
    return []
  }
  return found
}
