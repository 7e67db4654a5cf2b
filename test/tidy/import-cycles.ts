import { importsOf, isRelative, resolveRelative } from './imports.ts'
import type { SourceFile } from './source-file.ts'

/** Each cycle of relative imports, once. Type imports count: two files that need each other's types are one concept. */
export function importCycles(files: readonly SourceFile[]): readonly string[] {
  const graph = new Map(files.map((file) => [file.path, neighbours(file)]))
  const cycles: string[] = []
  const finished = new Set<string>()
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start !== -1) {
      cycles.push(`import cycle: ${[...trail.slice(start), path].join(' → ')}`)
      return
    }
    if (finished.has(path)) return
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path])
    finished.add(path)
  }
  for (const path of graph.keys()) visit(path, [])
  return cycles
}

function neighbours(file: SourceFile): readonly string[] {
  const targets = importsOf(file)
    .filter(({ specifier }) => isRelative(specifier))
    .map(({ specifier }) => resolveRelative(file.path, specifier))
  return [...new Set(targets)]
}
