// The TypeScript of a page as files. A block whose first line is a comment with a file name (`// jobs.ts`) is that file,
// and other blocks of the page may import it; a block without a name stands alone.
import { codeBlocks, type CodeBlock } from './markdown-pages.ts'

export interface PageSnippet extends CodeBlock {
  /** 'README/jobs.ts' */
  readonly file: string
  /** What the block that follows it says it prints: a ```text block with the word `output`. */
  readonly output: string | undefined
}

export function pageSnippets(page: string): readonly PageSnippet[] {
  const blocks = codeBlocks(page)
  const folder = page.replace(/\.md$/, '').replaceAll('/', '-')
  return blocks.flatMap((block, index) => {
    if (block.language !== 'ts') return []
    const name = /^\/\/ ([a-z0-9-]+\.ts)\n/.exec(block.text)?.[1] ?? `line-${block.line}.ts`
    const next = blocks[index + 1]
    const output = next?.flags.includes('output') === true ? next.text : undefined
    return [{ ...block, file: `${folder}/${name}`, output }]
  })
}
