// All cells of the kill matrix, counted and printed: npm run proof:effects [-- --storage sqlite|postgres]. Takes some
// minutes.
import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildPrograms, removePrograms } from '../crash/fixture-programs.ts'
import { stopSharedServer } from '../postgres/server.ts'
import { allCells, nameOf, runCells, table } from './kill-matrix.ts'
import { effectStorages, type EffectStorage } from './storages.ts'

const names = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const

const { values } = parseArgs({ options: { storage: { type: 'string' } } })
const wanted = Object.entries(names).flatMap(([option, name]) =>
  values.storage === undefined || values.storage === option ? [name] : [],
)
if (wanted.length === 0) throw new TypeError(`--storage is one of ${Object.keys(names).join(', ')}`)

async function prove(storage: EffectStorage): Promise<void> {
  const results = await runCells(storage, allCells(), 4, (cell, { end, acts }) => {
    process.stderr.write(`${nameOf(cell)}: ${end} ${acts.join('+')}\n`)
  })
  const all = [...results]
  const count = (end: string): number => all.filter(([, result]) => result.end === end).length
  const broken = all.filter(([, result]) => result.broken !== '')
  const lines = [
    `${storage.name}: ${all.length} cells`,
    table(results),
    `${count('completed')} completed, ${count('review')} in review, ${broken.length} broken`,
    ...broken.map(([cell, result]) => `BROKEN ${nameOf(cell)}: ${result.broken}`),
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
  if (broken.length > 0) process.exitCode = 1
}

const serverFolder = mkdtempSync(join(tmpdir(), 'chokaq-postgres-'))
// The server may run as another user than this process.
chmodSync(serverFolder, 0o755)
try {
  await buildPrograms()
  for (const storage of effectStorages(serverFolder))
    if (wanted.some((name) => name === storage.name)) await prove(storage)
} finally {
  removePrograms()
  await stopSharedServer(serverFolder)
}
