/** Events of a worker as lines: JSON for machines, `time name key=value …` for people. */
import { failureText, type StoredFailure } from '../core/failure.ts'
import type { ChokaQEvent, EventName } from '../core/events.ts'
import { jsonLine, oneLine } from './terminal-text.ts'

/** What people see without --verbose: starts and stops of the worker, what the handlers log, and what needs a look. */
const quiet: ReadonlySet<EventName> = new Set<EventName>([
  'worker.started',
  'worker.stopping',
  'worker.stopped',
  'worker.warning',
  'worker.beat_failed',
  'worker.stalled',
  'worker.fenced',
  'worker.declared_dead',
  'storage.failed',
  'storage.polling',
  'storage.listening',
  'job.dead',
  'job.rescued',
  'job.abandoned',
  'job.lease_lost',
  'job.log',
])

export function isForPeople(event: ChokaQEvent, verbose: boolean): boolean {
  return verbose || quiet.has(event.name)
}

/** What the command line itself has to say between the events, in the same form. */
export type CliEvent =
  | { readonly name: 'cli.signal'; readonly signal: string; readonly force: boolean; readonly runningCount: number }
  | { readonly name: 'cli.listening'; readonly url: string }
  | { readonly name: 'cli.unhandled_rejection' | 'cli.uncaught_exception'; readonly failure: StoredFailure }

export function eventJson(event: ChokaQEvent | CliEvent, at: Date): string {
  return jsonLine({ at: at.toISOString(), ...event })
}

export function eventText({ name, ...fields }: ChokaQEvent | CliEvent, at: Date): string {
  const shown = Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== null && !isEmptyObject(value))
    .map(([key, value]) => `${key}=${valueText(key, value)}`)
  return [at.toISOString(), name, ...shown].join(' ')
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

function valueText(key: string, value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const text =
    typeof value === 'string' ? value : key === 'failure' ? failureText(value as StoredFailure) : jsonLine(value)
  const line = oneLine(text)
  // Quoted where a value could pass for further fields.
  return /^[^\s"=]+$/.test(line) ? line : JSON.stringify(line)
}
