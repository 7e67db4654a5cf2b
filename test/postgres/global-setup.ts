// One PostgreSQL per run, started by the first test file that needs it and stopped here.
import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { stopSharedServer } from './server.ts'

export default function setup({ provide }: TestProject): () => Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'chokaq-postgres-'))
  // The server may run as another user than the tests.
  chmodSync(folder, 0o755)
  provide('postgresFolder', folder)
  return async () => {
    const kept = await stopSharedServer(folder)
    if (kept !== undefined) process.stderr.write(`The PostgreSQL of this run is kept in ${kept}\n`)
  }
}
