/**
 * node_modules/.bin/node run.ts [--json] [--quick] [--runs 5] [--only drain,latency] [--peers chokaq,pg-boss]
 * [--snapshot-minutes 5]: the same work for everyone on one server. Each measurement has a process and a database of its
 * own; contenders take turns within each round, so that what disturbs the machine disturbs all. ./setup comes first.
 */
import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { contenderNames, type ContenderName, type Variant } from './contender.ts'
import type { Assignment, Figures, MeasurementName, Sizes } from './measurements.ts'
import { Results, tableOf, verdictsOf } from './report.ts'
import { durability, startServers, type Servers } from './servers.ts'

interface Part {
  readonly name: string
  readonly measurement: MeasurementName
  readonly variant: Variant
  readonly contenders: readonly ContenderName[]
  /** A long one is measured once, whatever the number of rounds. */
  readonly isOnce?: boolean
}

const onPostgres: readonly ContenderName[] = ['chokaq', 'graphile-worker', 'pg-boss', 'bullmq on postgres']

const parts: readonly Part[] = [
  { name: 'drain', measurement: 'throughput', variant: 'plain', contenders: contenderNames },
  {
    name: 'keep',
    measurement: 'throughput',
    variant: 'keep 0',
    // graphile-worker never keeps anything: its drain is measured again, in turn with those it is compared with.
    contenders: ['chokaq', 'graphile-worker', 'bullmq on redis', 'bullmq on postgres'],
  },
  { name: 'keyed', measurement: 'throughput', variant: 'keyed', contenders: contenderNames },
  { name: 'workers', measurement: 'two workers', variant: 'plain', contenders: contenderNames },
  { name: 'latency', measurement: 'latency', variant: 'plain', contenders: contenderNames },
  { name: 'snapshot', measurement: 'snapshot', variant: 'plain', contenders: onPostgres, isOnce: true },
]

const full: Sizes = {
  jobCount: 100_000,
  singleCount: 5_000,
  latencyCount: 200,
  idleSeconds: 20,
  snapshotMinutes: 5,
  snapshotJobCount: 20_000,
}
const quick: Sizes = {
  jobCount: 3_000,
  singleCount: 500,
  latencyCount: 30,
  idleSeconds: 3,
  snapshotMinutes: 0.1,
  snapshotJobCount: 1_500,
}

/** Nothing here takes as long, so whoever does hangs. */
const longestMs = 180_000

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    runs: { type: 'string' },
    only: { type: 'string' },
    peers: { type: 'string' },
    'snapshot-minutes': { type: 'string' },
  },
})

function listOf(text: string | undefined, known: readonly string[]): readonly string[] {
  if (text === undefined) return known
  const chosen = text.split(',')
  const unknown = chosen.find((name) => !known.includes(name))
  if (unknown !== undefined) throw new TypeError(`${unknown} is none of ${known.join(', ')}`)
  return chosen
}

/** The figures that one process measured; what went wrong there ends the run. */
function measure(assignment: Assignment): Promise<Figures> {
  return new Promise((resolve, reject) => {
    const file = fileURLToPath(new URL('measure-process.ts', import.meta.url))
    const child = fork(file, [JSON.stringify(assignment)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    let figures: Figures | undefined
    child.on('message', (message) => (figures = (message as { readonly figures: Figures }).figures))
    const tooLong = setTimeout(() => child.kill('SIGKILL'), longestMs + assignment.sizes.snapshotMinutes * 60_000)
    child.on('exit', () => {
      clearTimeout(tooLong)
      if (figures === undefined) reject(new TypeError(`${assignment.contender} ended without figures`))
      else resolve(figures)
    })
  })
}

function versions(servers: Servers): Readonly<Record<string, string>> {
  const read = (path: string): string =>
    (JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as { readonly version: string }).version
  return {
    node: process.version,
    postgres: servers.versions.postgres,
    redis: servers.versions.redis,
    chokaq: read('../../package.json'),
    ...Object.fromEntries(
      ['graphile-worker', 'pg-boss', 'bullmq', 'ioredis', 'pg'].map((name) => [
        name,
        read(`node_modules/${name}/package.json`),
      ]),
    ),
  }
}

async function main(): Promise<void> {
  const chosenParts = listOf(
    options.only,
    parts.map(({ name }) => name),
  )
  const chosenPeers = listOf(options.peers, contenderNames)
  const rounds = Number(options.runs ?? (options.quick ? 1 : 5))
  const minutes = options['snapshot-minutes']
  const sizes = {
    ...(options.quick ? quick : full),
    ...(minutes === undefined ? {} : { snapshotMinutes: Number(minutes) }),
  }
  const say = (text: string): void => void process.stderr.write(`${text}\n`)
  const servers = await startServers()
  const results = new Results()
  try {
    for (const part of parts.filter(({ name }) => chosenParts.includes(name))) {
      const contenders = part.contenders.filter((name) => chosenPeers.includes(name))
      for (let round = 1; round <= (part.isOnce === true ? 1 : rounds); round += 1) {
        for (const contender of contenders) {
          const url = await servers.fresh()
          const { redisPort, pids: serverPids } = servers
          const { measurement, variant } = part
          const startedMs = Date.now()
          const figures = await measure({ measurement, contender, url, redisPort, variant, serverPids, sizes })
          await servers.drop(url)
          results.add(contender, figures)
          say(`${part.name}, round ${round}: ${contender} (${((Date.now() - startedMs) / 1_000).toFixed(1)} s)`)
        }
      }
    }
  } finally {
    await servers.stop()
  }
  const about = { versions: versions(servers), cores: cpus().length, rounds, sizes, durability }
  if (options.json) {
    const { entries, verdicts, limits } = results
    process.stdout.write(`${JSON.stringify({ ...about, lines: entries, targets: verdicts, limits }, null, 2)}\n`)
    return
  }
  const versionText = Object.entries(about.versions).map(([name, version]) => `${name} ${version}`)
  process.stdout.write(
    [
      versionText.join(', '),
      `${about.cores} cores; median of ${rounds}; PostgreSQL: ${durability.postgres}; Redis: ${durability.redis}`,
      '',
      tableOf(results),
      '',
      verdictsOf(results),
      '',
    ].join('\n'),
  )
}

await main()
