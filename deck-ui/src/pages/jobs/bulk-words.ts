import type { BulkAct } from '../../../../src/deck/wire-jobs.ts'

interface BulkWords {
  readonly button: string
  /** `12 jobs resurrected` */
  readonly done: string
  /** What it does to each job, in one sentence. */
  readonly what: string
}

export const bulkWords: Readonly<Record<BulkAct, BulkWords>> = {
  cancel: {
    button: 'Cancel',
    done: 'cancelled',
    what: 'Jobs that wait are archived as cancelled. For jobs that run, the cancel is asked for, and their worker carries it out.',
  },
  'retry-now': {
    button: 'Retry now',
    done: 'made due',
    what: 'Scheduled jobs become due at once instead of at their time. Nothing else changes.',
  },
  resurrect: {
    button: 'Resurrect',
    done: 'resurrected',
    what: 'Dead jobs run again as the same operation: finished effects are not repeated. Jobs in doubt are refused, since only a decision ends a doubt.',
  },
  purge: {
    button: 'Purge',
    done: 'purged',
    what: 'Dead jobs are deleted with their payloads and errors. This cannot be undone. Jobs in doubt are refused.',
  },
}
