/**
 * Values of tags, kept few: whoever stores jobs chooses their names, and every new value is a time series somebody pays
 * for. The first values seen keep their names; the rest is `other`.
 */
const maxChars = 128

export class CappedTag {
  readonly #maxCount: number
  /** From what was given to what is told, so that a known value costs one look-up. */
  readonly #known = new Map<string, string>()
  readonly #told = new Set<string>()

  constructor(maxCount: number) {
    this.#maxCount = maxCount
  }

  of(value: string | undefined): string {
    const known = value === undefined ? undefined : this.#known.get(value)
    return known ?? this.#add(value ?? '')
  }

  #add(value: string): string {
    const text = shortened(value)
    if (text === 'unknown' || text === 'other') return text
    const isNew = !this.#told.has(text)
    if (isNew && this.#told.size >= this.#maxCount) return 'other'
    this.#told.add(text)
    if (this.#known.size < 10 * this.#maxCount) this.#known.set(value, text)
    return text
  }
}

function shortened(value: string): string {
  const trimmed = value.trim()
  if (trimmed === '') return 'unknown'
  if (trimmed.length <= maxChars) return trimmed
  const cut = trimmed.slice(0, maxChars)
  // Half a character is no text.
  return /[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut
}

/** One set for everything a process tells, so that a queue has the same name in each metric. */
export class Tags {
  readonly queue = new CappedTag(100)
  readonly type = new CappedTag(500)
  readonly error = new CappedTag(100)
}
