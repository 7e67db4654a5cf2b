import { quoted } from './describe-value.ts'

/**
 * The first key of `input` that is not in `known`, as a sentence part for a message, with the nearest known key; or
 * undefined when all are known. Looks at own enumerable keys only, so that nothing inherited counts as an option.
 * `what` names the place, such as 'retry.backoff'.
 */
export function unknownKeyProblem(input: object, known: readonly string[], what: string): string | undefined {
  const unknown = Object.keys(input).find((key) => !known.includes(key))
  if (unknown === undefined) return undefined
  return `unknown option ${quoted(unknown)} in ${what}; ${suggestion(unknown, known)}`
}

/** 'did you mean "x"?' where a known word is near enough to be meant, else the list of known words. */
export function suggestion(word: string, known: readonly string[]): string {
  const nearest = nearestWord(word, known)
  if (nearest !== undefined) return `did you mean "${nearest}"?`
  return known.length === 0 ? 'nothing is known there' : `known: ${known.join(', ')}`
}

function nearestWord(word: string, known: readonly string[]): string | undefined {
  const wanted = word.toLowerCase()
  let best: string | undefined
  let bestDistance = Infinity
  for (const candidate of known) {
    const allowed = Math.max(1, Math.floor(candidate.length / 3))
    // Cheap first: no text that differs more in length can be near, and a huge key is never compared.
    if (Math.abs(candidate.length - wanted.length) > allowed) continue
    const distance = editDistance(wanted, candidate.toLowerCase())
    if (distance <= allowed && distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/**
 * Damerau-Levenshtein distance (optimal string alignment): the number of insertions, deletions, replacements and swaps
 * of neighbours that turn one text into the other.
 */
function editDistance(a: string, b: string): number {
  let beforeLast: readonly number[] = []
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = at(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let distance = Math.min(at(row, j - 1) + 1, at(last, j) + 1, replace)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwap) distance = Math.min(distance, at(beforeLast, j - 2) + 1)
      row.push(distance)
    }
    beforeLast = last
    last = row
  }
  return at(last, b.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity
}
