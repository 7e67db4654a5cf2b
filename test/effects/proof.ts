// All cells of the kill matrix, counted and printed: npm run proof:effects. Takes some minutes.
import { crashStorages } from '../crash/storages.ts'
import { allCells, nameOf, runCells, table } from './kill-matrix.ts'

for (const storage of crashStorages) {
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
