/** Everything of category Cc but line feed and tab: what no log line and no database text should carry. */
const controls = /[^\P{Cc}\n\t\0]/gu
/** NUL cannot be stored by PostgreSQL and half a surrogate pair not in UTF-8; in a u pattern pairs are left alone. */
const unstorable = /[\0\p{Surrogate}]/gu

/**
 * A text that every database, log and terminal takes, at most `maxChars` UTF-16 code units long: NUL and halves of
 * surrogate pairs become U+FFFD, control characters except line feed and tab are left out, and a longer text is cut
 * between two characters, with a note on how many code units are missing.
 */
export function cleanText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return clean(text)
  const note = ` … (${text.length - maxChars} more characters)`
  // The note itself takes room, so a little more than it says could be cut; its number is corrected with that.
  const kept = Math.max(0, maxChars - note.length - 2)
  if (kept === 0) return clean(wholeCharacters(text, maxChars))
  const head = wholeCharacters(text, kept)
  return `${clean(head)} … (${text.length - head.length} more characters)`
}

function clean(text: string): string {
  return text.replace(controls, '').replace(unstorable, '\ufffd')
}

/** The first `length` code units, one fewer where that would cut a character in two. */
function wholeCharacters(text: string, length: number): string {
  const isCutInside = /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(length - 1, length + 1))
  return text.slice(0, isCutInside ? length - 1 : length)
}
