// The exports map of package.json is the one list of entry points. The build, the tests and the package checks read it
// here, so that adding a subpath is one change.
import { readFileSync } from 'node:fs'

interface PackageEntry {
  /** What a user imports: 'chokaq/worker'. */
  readonly specifier: string
  /** The source file: './src/worker.ts'. */
  readonly source: string
  /** The path below dist/ without its extension: 'worker'. */
  readonly output: string
}

interface Manifest {
  readonly name: string
  readonly exports: Readonly<Record<string, string | { readonly 'chokaq-source': string; readonly default: string }>>
}

export function sourceEntries(): readonly PackageEntry[] {
  const manifest = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8')) as Manifest
  return Object.entries(manifest.exports).flatMap(([subpath, target]) => {
    if (typeof target === 'string') return []
    const output = target.default.replace(/^\.\/dist\//, '').replace(/\.js$/, '')
    return [{ specifier: manifest.name + subpath.slice(1), source: target['chokaq-source'], output }]
  })
}
