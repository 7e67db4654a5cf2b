/**
 * Every instrument, once. Names, units and attributes are an interface that dashboards and alerts stand on: they never
 * change. docs/operations/metrics.md lists the same; a test compares them.
 */
export interface InstrumentInfo {
  readonly kind: 'counter' | 'up-down counter' | 'histogram' | 'observable counter' | 'observable gauge'
  readonly unit: string
  readonly attributes: readonly string[]
  readonly description: string
}

const messaging = [
  'messaging.system',
  'messaging.destination.name',
  'messaging.operation.name',
  'messaging.operation.type',
  'error.type',
] as const

/** What this process did, counted as it happened: sum them over processes. */
export const processInstruments = {
  'chokaq.jobs.enqueued': {
    kind: 'counter',
    unit: '{job}',
    attributes: ['queue', 'type'],
    description: 'Jobs stored; not those stored inside a transaction of the caller.',
  },
  'chokaq.jobs.deduplicated': {
    kind: 'counter',
    unit: '{job}',
    attributes: ['queue', 'type', 'reason'],
    description: 'Enqueues whose key was held; the reason is the state of its holder.',
  },
  'chokaq.jobs.completed': {
    kind: 'counter',
    unit: '{job}',
    attributes: ['queue', 'type'],
    description: 'Jobs completed.',
  },
  'chokaq.jobs.failed': {
    kind: 'counter',
    unit: '{attempt}',
    attributes: ['queue', 'type', 'reason', 'error.type'],
    description: 'Attempts that were charged as failures, and jobs buried for another reason than a refusal.',
  },
  'chokaq.jobs.retried': {
    kind: 'counter',
    unit: '{attempt}',
    attributes: ['queue', 'type', 'reason', 'error.type'],
    description: 'Attempts after which the job waits for another one.',
  },
  'chokaq.jobs.dlq': {
    kind: 'counter',
    unit: '{job}',
    attributes: ['queue', 'type', 'reason', 'error.type'],
    description: 'Jobs that their worker buried in the DLQ; those of dead workers are in the cluster total.',
  },
  'chokaq.jobs.skipped': {
    kind: 'counter',
    unit: '{job}',
    attributes: ['queue', 'type'],
    description: 'Duplicates archived without running.',
  },
  'chokaq.idempotency.claims': {
    kind: 'counter',
    unit: '{claim}',
    attributes: ['queue', 'type', 'outcome'],
    description: 'Claims of keys and what came of them: the seven outcomes.',
  },
  'chokaq.effects': {
    kind: 'counter',
    unit: '{effect}',
    attributes: ['queue', 'type', 'outcome'],
    description: 'Effects that ended or were resolved.',
  },
  'chokaq.jobs.heartbeat_failures': {
    kind: 'counter',
    unit: '{failure}',
    attributes: ['error.type'],
    description: 'Heartbeats that got no answer.',
  },
  'chokaq.jobs.state_transition_conflicts': {
    kind: 'counter',
    unit: '{conflict}',
    attributes: ['queue', 'type', 'reason'],
    description: 'Jobs whose lease was lost; the reason is when it was noticed.',
  },
  'chokaq.workers.active': {
    kind: 'up-down counter',
    unit: '{worker}',
    attributes: [],
    description: 'Workers of this process that are registered and look for work.',
  },
  'chokaq.jobs.queue_lag': {
    kind: 'histogram',
    unit: 's',
    attributes: ['queue', 'type'],
    description: 'From the time a job was due to the start of its handler.',
  },
  'messaging.process.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: messaging,
    description: 'How long handlers ran.',
  },
  'messaging.client.sent.messages': {
    kind: 'counter',
    unit: '{message}',
    attributes: messaging,
    description: 'Jobs this process tried to store.',
  },
  'messaging.client.consumed.messages': {
    kind: 'counter',
    unit: '{message}',
    attributes: messaging,
    description: 'Jobs delivered to handlers.',
  },
} as const satisfies Record<string, InstrumentInfo>

/** What the database says for all processes: the same from each of them, so take the maximum. */
export const clusterInstruments = {
  'chokaq.cluster.jobs.enqueued': total('{job}', 'Jobs stored.'),
  'chokaq.cluster.jobs.deduplicated': total('{job}', 'Enqueues whose key was held.', 'reason'),
  'chokaq.cluster.jobs.completed': total('{job}', 'Jobs completed.'),
  'chokaq.cluster.jobs.failed': total('{attempt}', 'Failed attempts, and jobs buried other than refused.', 'reason'),
  'chokaq.cluster.jobs.retried': total('{attempt}', 'Attempts after which the job waits for another one.', 'reason'),
  'chokaq.cluster.jobs.dlq': total('{job}', 'Jobs buried in the DLQ.', 'reason'),
  'chokaq.cluster.jobs.skipped': total('{job}', 'Duplicates archived without running.'),
  'chokaq.cluster.jobs.cancelled': total('{job}', 'Jobs cancelled, and reviews abandoned.'),
  'chokaq.cluster.jobs.deferred': total('{job}', 'Times that a duplicate was put off.'),
  'chokaq.cluster.jobs.rescued': total('{job}', 'Jobs taken back from dead workers.', 'reason'),
  'chokaq.cluster.jobs.resurrected': total('{job}', 'Dead jobs brought back.', 'reason'),
  'chokaq.cluster.jobs.pruned': total('{job}', 'Rows deleted by retention.', 'reason'),
  'chokaq.cluster.jobs.purged': total('{job}', 'Dead jobs deleted by an operator.'),
  'chokaq.cluster.idempotency.claims': total('{claim}', 'Claims of keys and what came of them.', 'outcome'),
  'chokaq.cluster.queue.jobs': {
    kind: 'observable gauge',
    unit: '{job}',
    attributes: ['queue', 'state'],
    description: 'Jobs by state: scheduled, pending, fetched, processing, dead.',
  },
  'chokaq.cluster.queue.lag': {
    kind: 'observable gauge',
    unit: 's',
    attributes: ['queue'],
    description: 'Age of the oldest due job that waits; 0 where none does, and absent while the queue is paused.',
  },
} as const satisfies Record<string, InstrumentInfo>

export type ProcessInstrument = keyof typeof processInstruments
export type ClusterInstrument = keyof typeof clusterInstruments

function total<const L extends string = never>(unit: string, description: string, label?: L) {
  const attributes = ['queue', 'type', ...(label === undefined ? [] : [label])] as const
  return { kind: 'observable counter', unit, attributes, description } as const
}

/** Seconds: from a few milliseconds to hours, because a queue may wait and a handler may run that long. */
export const secondBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400,
] as const
