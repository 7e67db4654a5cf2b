// What every rule works on: a parsed file, by its path below the root. Rules never read the disk themselves, so that
// tidy-rules.test.ts can feed them snippets.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

export interface SourceFile {
  /** Below the repository root, with forward slashes: 'src/core/job.ts'. */
  readonly path: string
  readonly text: string
  readonly ast: ts.SourceFile
}

const skippedFolders = new Set(['node_modules', 'dist', 'coverage', 'assets', '.git'])

export function parse(path: string, text: string): SourceFile {
  const kind = path.endsWith('.tsx') ? ts.ScriptKind.TSX : ts.ScriptKind.TS
  return { path, text, ast: ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true, kind) }
}

/** Every file below the given folders (or the root itself for '.'), sorted. A folder that does not exist is empty. */
export function listFiles(root: string, folders: readonly string[], extension: string): readonly string[] {
  return folders.flatMap((folder) => walk(root, folder === '.' ? '' : folder, extension)).sort()
}

function walk(root: string, folder: string, extension: string): readonly string[] {
  return entriesOf(join(root, folder)).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) return skippedFolders.has(entry.name) ? [] : walk(root, path, extension)
    return entry.name.endsWith(extension) ? [path] : []
  })
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

export function readSources(root: string, folders: readonly string[]): readonly SourceFile[] {
  const paths = ['.ts', '.tsx'].flatMap((extension) => listFiles(root, folders, extension))
  return paths.map((path) => parse(path, readFileSync(join(root, path), 'utf8')))
}

/** A test, or something only tests use. */
export function isTestFile(path: string): boolean {
  return path.startsWith('test/') || path.endsWith('.test.ts')
}

/** Ships to users: below src/ and not a unit test. */
export function isShippedSource(path: string): boolean {
  return path.startsWith('src/') && !isTestFile(path)
}

/** 'src/core/job.ts:12' */
export function at(file: SourceFile, node: ts.Node): string {
  return `${file.path}:${file.ast.getLineAndCharacterOfPosition(node.getStart(file.ast)).line + 1}`
}

/** Calls `visit` for every node of the file. */
export function eachNode(file: SourceFile, visit: (node: ts.Node) => void): void {
  const descend = (node: ts.Node): void => {
    visit(node)
    ts.forEachChild(node, descend)
  }
  descend(file.ast)
}
