/**
 * How an example is started by hand, on a SQLite file of its own:
 * node --conditions=chokaq-source --import jiti/register examples/outbox/main.ts
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export type Print = (line: string) => void

/** Runs the example where `moduleUrl` is the file that Node was started with; a test that imports it runs nothing. */
export function whenStarted(moduleUrl: string, example: (path: string) => Promise<void>): void {
  if (process.argv[1] !== fileURLToPath(moduleUrl)) return
  const folder = mkdtempSync(join(tmpdir(), 'chokaq-example-'))
  example(join(folder, 'shop.db'))
    .finally(() => {
      rmSync(folder, { recursive: true, force: true })
    })
    .catch((error: unknown) => {
      console.error(error)
      process.exitCode = 1
    })
}
