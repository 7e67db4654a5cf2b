// What an attacker would put wherever a text of theirs is shown. Each would call `fired`, were it to run.
export const hostileTexts: readonly string[] = [
  '<script>fired(1)</script>',
  '<img src=x onerror=fired(2)>',
  '<svg onload=fired(3)><animate onbegin=fired(3) attributeName=x></svg>',
  'javascript:fired(4)',
  '"><b onmouseover=fired(5) autofocus onfocus=fired(5)>',
  "'-fired(6)-'",
  '{{constructor.constructor("fired(7)")()}}${fired(7)}',
  '</title></style></textarea></script><iframe srcdoc="<script>parent.fired(8)</script>">',
  '\u202Egnp.exe\u202C\u2066\u200B',
  '[31mred]0;title]8;;http://x\\',
]

/** All of them in one, for a place that takes one text only. */
export const hostileText = hostileTexts.join(' ')
export const hostileName = hostileTexts.slice(0, 2).join('')

/**
 * Puts hostile text behind every text of an answer, names of members in embedded JSON included, but for those that say
 * what the page has to do with the rest.
 */
export function poisoned(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return isStructure(name) ? value : poisonedText(value)
  if (Array.isArray(value)) return value.map((one) => poisoned(one, name))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, poisoned(one, key)]))
}

const structural = new Set([
  'pillar',
  'kind',
  'tone',
  'level',
  'health',
  'role',
  'act',
  'decision',
  'nextCursor',
  'label',
])
const isStructure = (name: string): boolean => structural.has(name)

function poisonedText(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return JSON.stringify({ ...value, [hostileText]: hostileText })
  } catch {
    // No JSON: a plain text.
  }
  return `${text} ${hostileText}`
}
