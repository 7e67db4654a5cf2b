// The package as a user gets it: built, packed, and unpacked into the node_modules of an empty project. Its dependencies
// are linked from here instead of being installed, so that no network is needed.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Project {
  /** The folder of the empty project. */
  readonly folder: string
  /** Paths in the tarball. */
  readonly packed: readonly string[]
  /** Writes a file of the project. */
  write(name: string, text: string): string
  remove(): void
}

export function projectWithPackage(alsoInstalled: readonly string[]): Project {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'chokaq-package-'))
  const staged = join(folder, 'staged')
  mkdirSync(staged)
  node('tsdown', 'dist/run.mjs', ['--out-dir', join(staged, 'dist'), '--logLevel', 'silent'], root)
  for (const name of ['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md'])
    cpSync(join(root, name), join(staged, name))
  const packed = pack(staged)
  const target = join(folder, 'node_modules/chokaq')
  for (const path of packed) {
    mkdirSync(dirname(join(target, path)), { recursive: true })
    cpSync(join(staged, path), join(target, path))
  }
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>
  }
  for (const name of [...Object.keys(dependencies), ...alsoInstalled]) {
    mkdirSync(dirname(join(folder, 'node_modules', name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  }
  const write = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  write('package.json', '{ "type": "module" }\n')
  return { folder, packed, write, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** What `npm pack` would put into the tarball. */
function pack(folder: string): readonly string[] {
  const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts', '--offline'], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const report = JSON.parse(output) as unknown
  // An array up to npm 11, an object by package name since npm 12.
  const [first] = Object.values(report as Record<string, { readonly files: readonly { readonly path: string }[] }>)
  return (first?.files ?? []).map(({ path }) => path)
}

/** Runs a script of an installed package; what it prints. Throws with its output where it fails. */
export function node(packageName: string, script: string, args: readonly string[], cwd: string): string {
  return execFileSync(process.execPath, [join(root, 'node_modules', packageName, script), ...args], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}
