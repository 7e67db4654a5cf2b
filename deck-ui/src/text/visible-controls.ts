/**
 * Makes visible what a text would hide. Texts of users reach these pages: a right-to-left override in a queue's name can
 * turn a sentence around, an escape sequence can hide a part, a zero-width space can make two keys look the same.
 */
export interface TextPiece {
  readonly text: string
  /** It stands for a character that would not be seen. */
  readonly isSign: boolean
}

// Controls, soft hyphen, Arabic letter mark, zero-width, bidirectional and tag characters, and the byte order mark.
const unseen =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Cs}/gu
const keptInBlocks = new Set(['\n', '\t', '\r'])

/** In a block, line ends and tabs stay what they are. */
export function piecesOf(text: string, { block = false } = {}): readonly TextPiece[] {
  const pieces: TextPiece[] = []
  let from = 0
  for (const { 0: character, index } of text.matchAll(unseen)) {
    if (block && keptInBlocks.has(character)) continue
    if (index > from) pieces.push({ text: text.slice(from, index), isSign: false })
    pieces.push({ text: signOf(character), isSign: true })
    from = index + character.length
  }
  if (from < text.length) pieces.push({ text: text.slice(from), isSign: false })
  return pieces
}

/** For attributes and the window's title, where no element can mark the sign. */
export function plainText(text: string): string {
  return piecesOf(text)
    .map((piece) => piece.text)
    .join('')
}

/** U+2400 and up are pictures of the control characters. */
function signOf(character: string): string {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  if (code === 0x7f) return '\u2421'
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}
