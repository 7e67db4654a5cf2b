/**
 * npm run bench [-- --json] [-- --quick] [-- --only enqueueLines,oneProcessLatency]
 * [-- --postgres URL]: the engine on SQLite with synchronous=FULL beside the bare loop, in one run.
 * Absolute rates are this machine's; compare the ratios.
 */
import {
  archiveLine,
  drainLines,
  enqueueLines,
  oneProcessLatency,
  postgresLines,
  scaleLines,
  twoProcessLatency,
  type Sizes,
} from './lines.ts'
import type { Line } from './measure.ts'

const full: Sizes = { rounds: 5, singleCount: 3_000, drainCount: 50_000, scaleCount: 1_000_000, latencyCount: 200 }
const quick: Sizes = { rounds: 1, singleCount: 300, drainCount: 5_000, scaleCount: 20_000, latencyCount: 20 }

const figure = (value: number): string => (value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2))

function row(line: Line): string {
  const ratio = line.ratio === undefined ? '' : `${line.ratio.toFixed(2)} of ${line.against ?? ''}`
  const verdict = line.target === undefined ? '' : `${line.met === true ? 'met' : 'NOT MET'}: ${line.target}`
  return `${line.name.padEnd(58)} ${`${figure(line.value)} ${line.unit}`.padStart(14)}  ${ratio.padEnd(42)} ${verdict}`
}

async function main(args: readonly string[]): Promise<void> {
  const json = args.includes('--json')
  const sizes = args.includes('--quick') ? quick : full
  const lines: Line[] = []
  const only = args.includes('--only') ? (args[args.indexOf('--only') + 1] ?? '').split(',') : undefined
  for (const part of [enqueueLines, drainLines, archiveLine, oneProcessLatency, twoProcessLatency, scaleLines]) {
    if (only !== undefined && !only.includes(part.name)) continue
    for (const line of await part(sizes)) {
      lines.push(line)
      if (!json) process.stdout.write(`${row(line)}\n`)
    }
  }
  const at = args.indexOf('--postgres')
  if (at >= 0) {
    for (const line of await postgresLines(args[at + 1] ?? '', { ...sizes, rounds: 3, drainCount: 30_000 })) {
      lines.push(line)
      if (!json) process.stdout.write(`${row(line)}\n`)
    }
  }
  if (json) process.stdout.write(`${JSON.stringify({ node: process.version, sizes, lines }, null, 2)}\n`)
}

void main(process.argv.slice(2))
