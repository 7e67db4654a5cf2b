// Runs snippets of a page in this process, in a temporary folder that is the working directory meanwhile.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from './markdown-pages.ts'

/** Writes the files, imports `entry`, and removes everything. What the entry exports. */
export async function runSnippet(files: ReadonlyMap<string, string>, entry: string): Promise<Record<string, unknown>> {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'chokaq-docs-'))
  const before = process.cwd()
  try {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    for (const [name, text] of files) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), text)
    }
    process.chdir(folder)
    return (await import(pathToFileURL(join(folder, entry)).href)) as Record<string, unknown>
  } finally {
    process.chdir(before)
    rmSync(folder, { recursive: true, force: true })
  }
}
