/** Builders of settle actions, named by their verbs. */
import type { StoredFailure } from '../../core/failure.ts'
import type { SettleAction } from '../../core/storage.ts'
import { day } from './new-job.ts'

type ActionOf<K extends SettleAction['kind']> = Extract<SettleAction, { kind: K }>
type Details<K extends SettleAction['kind']> = Partial<Omit<ActionOf<K>, 'kind'>>

export const boom: StoredFailure = { name: 'Error', message: 'the card machine is on fire', code: 'E_FIRE' }

export function complete(details: Details<'complete'> = {}): SettleAction {
  return {
    kind: 'complete',
    result: '{"charge":"ch_1"}',
    markerLifeMs: 60 * day,
    keep: { kind: 'full' },
    children: [],
    ...details,
  }
}

/** A charged failure that is due again at once. */
export function retry(details: Details<'retry'> = {}): SettleAction {
  return { kind: 'retry', delayMs: 0, failure: boom, charge: 'failure', reason: 'failed', ...details }
}

export function bury(details: Details<'bury'> = {}): SettleAction {
  return { kind: 'bury', reason: 'MaxRetriesExceeded', failure: boom, hold: false, ...details }
}

export function skip(duplicateOf: string, details: Details<'skip'> = {}): SettleAction {
  return { kind: 'skip', holder: 'completed', result: '{"charge":"ch_0"}', ...details, duplicateOf }
}

export function defer(delayMs = 5000): SettleAction {
  return { kind: 'defer', delayMs }
}

export function cancel(hold = false): SettleAction {
  return { kind: 'cancel', hold }
}

export const release: SettleAction = { kind: 'release' }
