/** From facts to findings: pure, so that every rule is tested by itself. docs/cli.md lists the checks. */
import { quoted } from '../../core/describe-value.ts'
import { formatMs } from '../../core/duration.ts'
import type { SchemaState } from '../../core/inspector.ts'
import { listAnswered, textAnswered, typeAnswers } from '../../core/type-answers.ts'
import { counted } from '../table.ts'
import type { DoctorFacts } from './facts.ts'

export const doctorChecks = [
  'schema-drift',
  'no-worker',
  'unknown-type',
  'unserved-queue',
  'paused-queue',
  'lag',
  'silent-worker',
  'clock-skew',
  'dead-rows',
  'old-transaction',
  'file-size',
  'polling',
  'boot-warning',
  'review',
  'dlq-growth',
] as const
export type DoctorCheck = (typeof doctorChecks)[number]

export interface Finding {
  readonly check: DoctorCheck
  /** An error keeps jobs from being done; a warning is worth a look. */
  readonly severity: 'error' | 'warning'
  readonly text: string
  readonly advice: string
}

type Rule = (facts: DoctorFacts) => readonly Finding[]

const second = 1_000
const hour = 3_600_000
const lagWarningMs = 5 * second
const lagErrorMs = 60 * second
const skewMs = 2 * second
/** A busy table has many dead rows between two rounds of autovacuum, which come every minute. */
const deadRowCount = 50_000
const uncleanedMs = 10 * 60 * second
/** Four times the size at which workers write it back. */
const largeLogBytes = 128 * 1024 * 1024
const largeFreeBytes = 512 * 1024 * 1024
/** So many deaths within an hour are no accident. */
const growthCount = 10

/** Errors first. */
export function examine(facts: DoctorFacts): readonly Finding[] {
  const found = rules.flatMap((rule) => rule(facts))
  return [
    ...found.filter(({ severity }) => severity === 'error'),
    ...found.filter(({ severity }) => severity === 'warning'),
  ]
}

const rules: readonly Rule[] = [
  schemaDrift,
  noWorker,
  unknownTypes,
  unservedQueues,
  pausedQueues,
  lags,
  silentWorkers,
  clockSkew,
  deadRows,
  oldTransaction,
  fileSize,
  polling,
  bootWarnings,
  reviews,
  dlqGrowth,
]

function schemaDrift({ schema }: DoctorFacts): readonly Finding[] {
  const difference = driftOf(schema)
  if (difference === undefined) return []
  const advice =
    'Tables were changed by something else than this version; compare the versions that share the database.'
  return [{ check: 'schema-drift', severity: 'error', text: difference, advice }]
}

function driftOf({ applied, known }: SchemaState): string | undefined {
  const names = new Map(applied.map(({ version, name }) => [version, name]))
  for (const { version, name } of known) {
    const found = names.get(version)
    if (found === undefined) return `migration ${version} ${quoted(name)} has not run`
    if (found !== name) return `migration ${version} is ${quoted(found)} in the database and ${quoted(name)} here`
    names.delete(version)
  }
  const [more] = names
  return more === undefined ? undefined : `migration ${more[0]} ${quoted(more[1])} is not known here`
}

function noWorker({ liveWorkers, queues }: DoctorFacts): readonly Finding[] {
  const waitingCount = queues.reduce((sum, { pendingCount }) => sum + pendingCount, 0)
  if (liveWorkers.length > 0 || waitingCount === 0) return []
  const text = `${counted(waitingCount, 'job')} waiting, and no worker lives`
  return [{ check: 'no-worker', severity: 'error', text, advice: 'Start a worker.' }]
}

function unknownTypes({ waitingTypes, liveWorkers }: DoctorFacts): readonly Finding[] {
  // Without any worker there is one finding for all types.
  if (liveWorkers.length === 0) return []
  return waitingTypes.map(({ type, queue }) => ({
    check: 'unknown-type',
    severity: 'error',
    text: `jobs of type ${quoted(type)} wait in queue ${quoted(queue)}, and no live worker has a handler for it`,
    advice: 'Deploy a worker with its handler, or cancel the jobs.',
  }))
}

function unservedQueues({ queues, liveWorkers }: DoctorFacts): readonly Finding[] {
  if (liveWorkers.length === 0) return []
  const served = new Set(liveWorkers.flatMap((worker) => worker.queues))
  return queues
    .filter(({ name, pendingCount, scheduledCount }) => pendingCount + scheduledCount > 0 && !served.has(name))
    .map(({ name, pendingCount, scheduledCount }) => ({
      check: 'unserved-queue',
      severity: pendingCount > 0 ? 'error' : 'warning',
      text: `queue ${quoted(name)} has ${counted(pendingCount + scheduledCount, 'job')}, and no live worker serves it`,
      advice: 'Start a worker that lists it in its queues.',
    }))
}

function pausedQueues({ queues }: DoctorFacts): readonly Finding[] {
  return queues
    .filter(({ paused, pendingCount }) => paused && pendingCount > 0)
    .map(({ name, pendingCount, lagMs }) => ({
      check: 'paused-queue',
      severity: 'warning',
      text: `queue ${quoted(name)} is paused with ${counted(pendingCount, 'job')}, the oldest for ${formatMs(lagMs ?? 0)}`,
      advice: `chokaq queues resume ${name}`,
    }))
}

function lags({ queues }: DoctorFacts): readonly Finding[] {
  return queues
    .filter(({ paused, lagMs }) => !paused && (lagMs ?? 0) >= lagWarningMs)
    .map(({ name, lagMs = 0 }) => ({
      check: 'lag',
      severity: lagMs >= lagErrorMs ? 'error' : 'warning',
      text: `the oldest job of queue ${quoted(name)} has waited for ${formatMs(lagMs)}`,
      advice: 'More workers, more concurrency, or a queue of its own for what is slow: docs/operations/runbooks.md#lag',
    }))
}

function silentWorkers({ silentWorkers: silent, nowMs }: DoctorFacts): readonly Finding[] {
  return silent.map(({ name, beatAtMs, runningCount }) => ({
    check: 'silent-worker',
    severity: 'warning',
    text: `the beat of worker ${quoted(name)} has stood still for ${formatMs(nowMs - beatAtMs)}, with ${counted(runningCount, 'job')}`,
    advice: 'A live worker takes its jobs back within half a minute; if none does, start one.',
  }))
}

/** Jobs are due by the database's clock; what is shown here and logged by workers goes by the machine's. */
function clockSkew({ behindMs }: DoctorFacts): readonly Finding[] {
  if (Math.abs(behindMs) <= skewMs) return []
  const direction = behindMs > 0 ? 'behind' : 'ahead of'
  const text = `the clock of this machine is ${formatMs(Math.abs(behindMs))} ${direction} that of the database`
  return [{ check: 'clock-skew', severity: 'warning', text, advice: 'Synchronise both clocks (NTP).' }]
}

/** Dead rows lie in front of those that wait: each fetch steps over them until they are cleaned up. */
function deadRows({ upkeep, nowMs }: DoctorFacts): readonly Finding[] {
  return upkeep.tables.flatMap(({ name, liveCount, deadCount, cleanedAtMs, isCleaned }): readonly Finding[] => {
    if (!isCleaned) {
      const text = `nothing cleans up the table ${quoted(name)} (${counted(deadCount, 'dead row')}): autovacuum is off`
      return [
        { check: 'dead-rows', severity: 'warning', text, advice: 'Turn autovacuum on, for the server and the table.' },
      ]
    }
    const isOld = cleanedAtMs === undefined || upkeep.nowMs - cleanedAtMs > uncleanedMs
    if (deadCount < deadRowCount || deadCount < liveCount || !isOld) return []
    const when = cleanedAtMs === undefined ? 'never' : `${formatMs(nowMs - cleanedAtMs)} ago`
    const text = `the table ${quoted(name)} has ${counted(deadCount, 'dead row')} and ${liveCount} others, cleaned up last: ${when}`
    const advice = 'Look for an old transaction first, then VACUUM (VERBOSE) it: docs/operations/runbooks.md#dead-rows'
    return [{ check: 'dead-rows', severity: 'warning', text, advice }]
  })
}

function oldTransaction({ upkeep: { oldestSnapshotMs = 0 } }: DoctorFacts): readonly Finding[] {
  if (oldestSnapshotMs < uncleanedMs) return []
  const text = `a transaction has been open for ${formatMs(oldestSnapshotMs)}: no row that died since can be cleaned up`
  const advice = 'Find it in pg_stat_activity (backend_xmin is set, order by xact_start) and end it.'
  return [{ check: 'old-transaction', severity: 'warning', text, advice }]
}

function fileSize({ upkeep: { file } }: DoctorFacts): readonly Finding[] {
  if (file === undefined) return []
  const findings: Finding[] = []
  if (file.logBytes >= largeLogBytes) {
    const text = `the write-ahead log has ${megabytes(file.logBytes)}: a reader keeps it from being written back`
    const advice = 'Find the process that holds a read transaction open on the file, and end it.'
    findings.push({ check: 'file-size', severity: 'warning', text, advice })
  }
  if (file.freeBytes >= largeFreeBytes && file.freeBytes > file.sizeBytes / 2) {
    const text = `${megabytes(file.freeBytes)} of the file's ${megabytes(file.sizeBytes)} are free`
    const advice = 'New rows use it. To give it back to the disk, stop the workers and run VACUUM.'
    findings.push({ check: 'file-size', severity: 'warning', text, advice })
  }
  return findings
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1_000_000)} MB`
}

/** Not where no worker lives: there is a finding for that. */
function polling({ upkeep: { listenerCount }, liveWorkers }: DoctorFacts): readonly Finding[] {
  if (listenerCount !== 0 || liveWorkers.length === 0) return []
  const text = 'no worker hears what other processes enqueue: such jobs start at the next look, which is up to 2s later'
  const advice = 'As it is behind a pooler, and with listen: false; otherwise let workers connect to the server itself.'
  return [{ check: 'polling', severity: 'warning', text, advice }]
}

/** What the workers' own boot checks warned of when they started. */
function bootWarnings({ types }: DoctorFacts): readonly Finding[] {
  const texts = new Map<string, string>()
  const warnings = types.flatMap((type) => listAnswered(typeAnswers(type), 'bootWarnings'))
  for (const { rule, text } of warnings) texts.set(textAnswered(text), textAnswered(rule))
  return [...texts].map(([text, rule]) => ({
    check: 'boot-warning',
    severity: 'warning',
    text: `${rule}: ${text}`,
    advice: 'docs/configuration.md#boot-checks',
  }))
}

function reviews({ inReview, nowMs }: DoctorFacts): readonly Finding[] {
  if (inReview.length === 0) return []
  const oldestMs = Math.max(...inReview.map(({ finishedAtMs }) => nowMs - (finishedAtMs ?? nowMs)))
  const text = `${counted(inReview.length, 'job')} ${inReview.length === 1 ? 'waits' : 'wait'} for a person, the oldest for ${formatMs(Math.max(0, oldestMs))}`
  return [{ check: 'review', severity: 'warning', text, advice: 'chokaq review list' }]
}

function dlqGrowth({ dead, nowMs }: DoctorFacts): readonly Finding[] {
  const recent = dead.filter(({ finishedAtMs }) => nowMs - (finishedAtMs ?? 0) <= hour)
  if (recent.length < growthCount) return []
  const reasons = new Map<string, number>()
  for (const { type, reason } of recent) {
    const cause = `${type} ${reason ?? 'unknown'}`
    reasons.set(cause, (reasons.get(cause) ?? 0) + 1)
  }
  const top = [...reasons].sort(([, a], [, b]) => b - a).slice(0, 3)
  const text = `${counted(recent.length, 'job')} died within the last hour: ${top.map(([cause, count]) => `${count} × ${cause}`).join(', ')}`
  return [
    {
      check: 'dlq-growth',
      severity: 'warning',
      text,
      advice: 'chokaq dlq list: docs/operations/runbooks.md#dlq-growth',
    },
  ]
}
