// What the tests of the documents need to know of Markdown: pages, code blocks, headings, links and tables.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listFiles } from '../tidy/source-file.ts'

export const root = fileURLToPath(new URL('../..', import.meta.url))

export interface CodeBlock {
  readonly page: string
  readonly line: number
  /** 'ts', 'sh' … and the words after it: 'ts run' → ['run']. */
  readonly language: string
  readonly flags: readonly string[]
  readonly text: string
}

/** Every page that is published with the repository. */
export function pagePaths(): readonly string[] {
  return listFiles(root, ['.'], '.md').filter((path) => !path.includes('/') || path.startsWith('docs/'))
}

export function readPage(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

export function codeBlocks(page: string, text = readPage(page)): readonly CodeBlock[] {
  const blocks: CodeBlock[] = []
  let open: { readonly line: number; readonly info: readonly string[]; readonly lines: string[] } | undefined
  for (const [index, line] of text.split('\n').entries()) {
    if (open === undefined) {
      const info = /^```(\S.*)?$/.exec(line)
      if (info !== null) open = { line: index + 1, info: (info[1] ?? '').trim().split(/\s+/), lines: [] }
    } else if (/^```\s*$/.test(line)) {
      const [language = '', ...flags] = open.info
      blocks.push({ page, line: open.line, language, flags, text: `${open.lines.join('\n')}\n` })
      open = undefined
    } else open.lines.push(line)
  }
  return blocks
}

/** The text without fenced code. */
export function proseOf(text: string): string {
  return text.replace(/^```[\s\S]*?^```\s*$/gm, '')
}

/** The anchors that GitHub makes of a page's headings. */
export function anchorsOf(text: string): ReadonlySet<string> {
  const seen = new Map<string, number>()
  const anchors = [...proseOf(text).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => {
    const plain = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    const slug = plain.trim().replaceAll(' ', '-')
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  })
  return new Set(anchors)
}

/** Targets of links and images that are no web addresses. */
export function localLinks(text: string): readonly string[] {
  const targets = [...proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
  return targets.filter((target) => !/^[a-z]+:/i.test(target))
}

/** Cells of every table row below a heading (or on the whole page), header and ruler left out. */
export function tableRows(text: string, heading?: string): readonly (readonly string[])[] {
  const section = heading === undefined ? text : sectionOf(text, heading)
  const rows: (readonly string[])[] = []
  let isBody = false
  for (const line of proseOf(section).split('\n')) {
    if (!line.startsWith('|')) isBody = false
    else if (/^\|[\s:|-]+\|$/.test(line)) isBody = true
    else if (isBody) rows.push(cellsOf(line))
  }
  return rows
}

function cellsOf(line: string): readonly string[] {
  const cells = line.slice(1, line.lastIndexOf('|')).split(/(?<!\\)\|/)
  return cells.map((cell) => cell.trim().replaceAll('\\|', '|'))
}

/** From a heading to the next one of the same level or above. */
export function sectionOf(text: string, heading: string): string {
  const lines = text.split('\n')
  const start = lines.findIndex((line) => line.startsWith('#') && line.replace(/^#+ /, '') === heading)
  if (start < 0) throw new RangeError(`there is no heading "${heading}"`)
  const level = /^#+/.exec(lines[start] ?? '')?.[0].length ?? 1
  const end = lines.findIndex((line, index) => index > start && new RegExp(`^#{1,${level}} `).test(line))
  return lines.slice(start + 1, end < 0 ? undefined : end).join('\n')
}

/** '`a`, `b`' → ['a', 'b'] */
export function codeWords(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word)
}
