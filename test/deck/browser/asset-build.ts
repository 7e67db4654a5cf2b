// The page that the Deck serves, built where it is missing or older than what it is built from.
import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const built = join(root, 'src/deck/assets/index.html')
const sources = [
  'deck-ui/src',
  'deck-ui/index.html',
  'deck-ui/dev/vite.config.ts',
  'src/deck/wire.ts',
  'src/core/job.ts',
]

export function ensureAssets(): void {
  if (Math.max(...sources.map((path) => newest(join(root, path)))) < newest(built)) return
  execFileSync('npm', ['run', '--silent', 'build:deck'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
}

/** When the file, or the youngest file below the folder, was changed; 0 where there is none. */
function newest(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return 0
  if (!found.isDirectory()) return found.mtimeMs
  return Math.max(0, ...readdirSync(path).map((name) => newest(join(path, name))))
}
