/**
 * Events as log lines of any logger that takes (fields, message) as pino does. Names are those of the catalogue and
 * levels are fixed, so that a search or an alert on them stays true.
 */
import { unreachable } from './errors.ts'
import type { ChokaQEvent, EventListener, EventName } from './events.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** pino, or anything with the same four methods. */
export type EventLogger = { readonly [L in LogLevel]: (fields: object, message: string) => void }

/** The usual level of each event. A few are louder by what they say: see `levelOf`. */
export const eventLevels: Readonly<Record<EventName, LogLevel>> = {
  'job.enqueued': 'debug',
  'job.deduplicated': 'debug',
  'job.started': 'debug',
  'job.skipped': 'debug',
  'job.deferred': 'debug',
  'job.released': 'debug',
  'idempotency.claim': 'debug',
  'job.aborted': 'warn',
  'job.abandoned': 'warn',
  'job.log': 'info',
  'effect.outcome': 'debug',
  'job.completed': 'debug',
  'job.retried': 'warn',
  'job.dead': 'error',
  'job.cancelled': 'info',
  'job.lease_lost': 'warn',
  'worker.declared_dead': 'warn',
  'job.rescued': 'warn',
  'sweep.promoted': 'debug',
  'sweep.pruned': 'debug',
  'worker.started': 'info',
  'worker.warning': 'warn',
  'worker.beat_failed': 'warn',
  'worker.stalled': 'warn',
  'worker.fenced': 'error',
  'worker.disowned': 'warn',
  'worker.stopping': 'info',
  'worker.stopped': 'info',
  'storage.failed': 'error',
  'storage.polling': 'warn',
  'storage.listening': 'info',
}

/** A retry or polling that was asked for is no news; a conflict of claims and an effect that needs a person are. */
export function levelOf(event: ChokaQEvent): LogLevel {
  const usual = eventLevels[event.name]
  switch (event.name) {
    case 'storage.polling':
      return event.failure === null ? 'info' : usual
    case 'job.retried':
      return event.reason === 'retry-after' || event.reason === 'shutdown' ? 'info' : usual
    case 'idempotency.claim':
      return event.outcome === 'complete_conflict' ? 'error' : usual
    case 'effect.outcome':
      return levelOfEffect(event.outcome, usual)
    default:
      return usual
  }
}

function levelOfEffect(
  outcome: Extract<ChokaQEvent, { name: 'effect.outcome' }>['outcome'],
  usual: LogLevel,
): LogLevel {
  switch (outcome) {
    case 'review':
    case 'double':
      return 'error'
    case 'ambiguous':
    case 'waiting':
    case 'reconciled':
      return 'warn'
    case 'done':
    case 'replayed':
    case 'terminal':
    case 'not_executed':
      return usual
    default:
      return unreachable(outcome, 'effect outcome')
  }
}

/**
 * Writes every event of a client and of the workers made from it. The message is the event's name (for `ctx.log` what
 * the handler said), `event` holds the name, and the fields are those of docs/events.md. Returns how to stop.
 *
 * @example
 * logEvents(chokaq, pino())
 */
export function logEvents(chokaq: { subscribe(listener: EventListener): () => void }, logger: EventLogger): () => void {
  return chokaq.subscribe((event) => {
    // `name` is the logger's own in many loggers.
    const { name, ...fields } = event
    logger[levelOf(event)]({ event: name, ...fields }, event.name === 'job.log' ? event.message : name)
  })
}
