import type { JobAct } from '../../../../src/deck/wire-jobs.ts'

export interface ActWords {
  readonly button: string
  readonly title: string
  /** What it will do, before it is done. */
  readonly what: string
  readonly noteRequired: boolean
}

export const actWords: Readonly<Record<JobAct, ActWords>> = {
  cancel: {
    button: 'Cancel',
    title: 'Cancel this job',
    what: 'A job that waits is archived as cancelled. One that runs is asked to stop; if it has an effect in doubt by then, it goes to review instead.',
    noteRequired: false,
  },
  'retry-now': {
    button: 'Retry now',
    title: 'Retry now',
    what: 'The job becomes due at once instead of at its time. Its attempts, failures and effects stay what they are.',
    noteRequired: false,
  },
  'resurrect-continue': {
    button: 'Resurrect',
    title: 'Resurrect: continue the operation',
    what: 'The job runs again under the same keys. Effects that are done are not repeated; failures and crashes start from zero.',
    noteRequired: true,
  },
  'resurrect-new': {
    button: 'As new operation',
    title: 'Resurrect as a new operation',
    what: 'The job runs as a new generation of its key. Effects that are done count for the old operation only: they are performed a second time.',
    noteRequired: true,
  },
  edit: {
    button: 'Edit payload',
    title: 'Edit the payload',
    what: 'Opens the editor.',
    noteRequired: true,
  },
  purge: {
    button: 'Purge',
    title: 'Purge this job',
    what: 'The job is deleted with its payload, errors and history. This cannot be undone.',
    noteRequired: true,
  },
  review: {
    button: 'Decide',
    title: 'Decide',
    what: 'Opens the evidence.',
    noteRequired: true,
  },
}
