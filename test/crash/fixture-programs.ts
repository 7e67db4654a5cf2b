// The fixtures as single files: a process that loads one starts four times faster than one that transpiles its way through
// the sources, and a crash matrix starts a hundred of them. Built from the sources as they are, once per test file.
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const sources = {
  worker: 'test/crash/fixtures/worker.ts',
  producer: 'test/crash/fixtures/producer.ts',
  operator: 'test/crash/fixtures/operator.ts',
  'effect-worker': 'test/effects/fixtures/effect-worker.ts',
} as const
export type Program = keyof typeof sources
const root = fileURLToPath(new URL('../..', import.meta.url))
/** Below node_modules, so that the drivers are found from there. */
const folder = join(root, 'node_modules', '.cache', `chokaq-crash-${process.pid}`)

export function programOf(program: Program): string {
  return join(folder, `${program}.js`)
}

let userCount = 0
let built: Promise<unknown> | undefined

/** Two storages may be tested side by side: the last one to leave removes what they share. */
export async function buildPrograms(): Promise<void> {
  userCount += 1
  await (built ??= buildAll())
}

export function removePrograms(): void {
  userCount -= 1
  if (userCount > 0) return
  built = undefined
  rmSync(folder, { recursive: true, force: true })
}

async function buildAll(): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const input = Object.fromEntries(Object.entries(sources).map(([program, file]) => [program, join(root, file)]))
  await build({
    root,
    configFile: false,
    logLevel: 'silent',
    ssr: { noExternal: true, external: ['better-sqlite3', 'pg'] },
    build: {
      ssr: true,
      outDir: folder,
      emptyOutDir: false,
      minify: false,
      target: 'node20',
      rolldownOptions: { input },
    },
  })
}
