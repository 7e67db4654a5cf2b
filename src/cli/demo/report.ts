/** The table at the end, for people. */
import type { ClaimOutcome } from '../../core/counters.ts'
import { formatMs } from '../../core/duration.ts'
import { table } from '../table.ts'
import type { Account, KillFact, ProviderAccount } from './accounting.ts'
import type { DeliveryRole } from './deliveries.ts'
import { causes } from './evidence.ts'
import type { ProviderName } from './provider/names.ts'
import { leaseTimes, minChargeKills, minKills } from './settings.ts'

interface Line {
  readonly what: string
  readonly count: string
  readonly note: string
}

const roleTexts: Readonly<Record<DeliveryRole, string>> = {
  first: 'first delivery',
  together: 'sent together with the first',
  soon: 'sent a little later',
  changed: 'same id, other body',
  settled: 'sent after everything was done',
}

const maxShownProblems = 10

export function reportText(account: Account, kills: readonly KillFact[], isProtected: boolean): string {
  const lines = [
    ...deliveryLines(account, isProtected),
    ...killLines(account, kills),
    ...attemptLines(account),
    ...chargeLines(account),
    ...(isProtected ? doubtLines(account) : []),
    ...claimLines(account),
    ...endLines(account),
  ]
  return table<Line>(
    [
      { title: 'what', of: ({ what }) => what },
      { title: 'count', of: ({ count }) => count, align: 'right' },
      { title: 'note', of: ({ note }) => note },
    ],
    lines,
  )
}

function line(what: string, count: number, note = ''): Line {
  return { what, count: String(count), note }
}

function deliveryLines(account: Account, isProtected: boolean): readonly Line[] {
  const share = Math.round((100 * account.redeliveryCount) / account.requestCount)
  return [
    line('HTTP requests sent', account.requestCount, `${share} % of them redeliveries`),
    line('deliveries', account.deliveryCount, 'each is one payment attempt'),
    ...account.duplicates.map(({ role, outcome, count }) => line(`  ${roleTexts[role]}`, count, outcomeText(outcome))),
    ...(isProtected
      ? [line('conflicts kept for a person', account.conflictCount, 'one dead row each: KeyReused')]
      : []),
  ]
}

function outcomeText(outcome: string): string {
  if (outcome === 'enqueued') return 'enqueued: a job of its own'
  if (outcome === 'conflict') return 'conflict: nothing ran'
  return outcome
}

function killLines(account: Account, kills: readonly KillFact[]): readonly Line[] {
  const times = kills.map(({ rescuedAfterMs }) => rescuedAfterMs).filter((ms) => ms !== null)
  const slowest = times.length === 0 ? 'no rescue seen' : `slowest ${formatMs(Math.max(...times))}`
  return [
    line('kills (SIGKILL)', account.killCount, `jobs taken back after the kill: ${slowest}`),
    line('  interrupted a handler', account.handlerKillCount, `at least ${minKills} wanted`),
    line('  hit a charge in flight', account.chargeKillCount, `at least ${minChargeKills} wanted`),
    line(
      '  handlers interrupted',
      account.interruptedCount,
      `by silence alone: after ${formatMs(leaseTimes.deadAfter)}`,
    ),
  ]
}

const causeNotes: Readonly<Record<string, string>> = {
  [causes.serverError]: 'nobody knew whether the charge was made',
  [causes.connectionCut]: 'nobody knew whether the charge was made',
  [causes.waiting]: 'it says "absent", and its reads lag: asked again later',
  [causes.review]: 'nobody can be asked: parked until a person had looked',
  [causes.keyInUse]: 'the call of a killed worker was still running: waited',
}

function attemptLines({ extraAttempts, interruptedCount }: Account): readonly Line[] {
  const total = extraAttempts.reduce((sum, { count }) => sum + count, 0)
  return [
    line('extra attempts', total, 'handlers run at least once, never silently again'),
    ...extraAttempts.map(({ why, count }) =>
      line(`  ${why}`, count, why === causes.killed ? killedNote(interruptedCount) : causeNotes[why]),
    ),
  ]
}

/** A worker fetches ahead and marks as started what it will run next: what it had no time for counts as started too. */
function killedNote(interruptedCount: number): string {
  return `${interruptedCount} in the middle of the handler, the others fetched ahead`
}

function chargeLines(account: Account): readonly Line[] {
  const { chargeCount, attemptsByCharges, doubleCount, overchargedCents } = account
  const tooMuch = (overchargedCents / 100).toFixed(2)
  return [
    line("charges in the provider's ledger", chargeCount, 'read from its own file'),
    ...attemptsByCharges.map(({ charges, attempts }) =>
      line(`  payment attempts charged ${charges}×`, attempts, charges === 1 ? 'exactly once' : ''),
    ),
    ...(doubleCount > 0 ? [line('  DOUBLE CHARGES', doubleCount, `customers paid ${tooMuch} too much in all`)] : []),
  ]
}

const doubtNotes: Readonly<Record<ProviderName, string>> = {
  card: 'settled by the same key again',
  bank: 'no keys; settled by asking it',
  voucher: 'no keys, cannot be asked; settled by a person',
}

function doubtLines({ providers }: Account): readonly Line[] {
  const sum = (of: (one: ProviderAccount) => number): number => providers.reduce((total, one) => total + of(one), 0)
  const [adopted, retried] = [sum((one) => one.adoptedCount), sum((one) => one.retriedCount)]
  return [
    line(
      'payments in doubt',
      sum(({ inDoubtCount }) => inDoubtCount),
      'at some moment nobody knew whether money had moved',
    ),
    ...providers.map(({ provider, inDoubtCount, paymentCount }) =>
      line(`  ${provider}`, inDoubtCount, `of ${paymentCount}; ${doubtNotes[provider]}`),
    ),
    line(
      'reconciled',
      sum(({ reconciledCount }) => reconciledCount),
      'the bank knew the charge, so its result was adopted',
    ),
    line('reviewed', adopted + retried, `${adopted} found in the books: adopted; ${retried} not there: retried`),
  ]
}

const claimNotes: Readonly<Record<ClaimOutcome, string>> = {
  claimed: 'a start of a job that has a key',
  completed: 'jobs with a key that completed',
  completed_duplicate: 'met at its start what was done already',
  in_progress_duplicate: 'met at its start what was being done',
  released: 'ended without success, the key is free',
  complete_conflict: 'two of one key completed; must be 0',
  empty_key: 'refused: the key was empty',
}

function claimLines({ claims }: Account): readonly Line[] {
  const noted = claims.map(({ outcome, count }) => line(`  ${outcome}`, count, claimNotes[outcome]))
  const total = claims.reduce((sum, { count }) => sum + count, 0)
  return [line('outcomes of claims', total, 'the same in /metrics'), ...noted]
}

function endLines(account: Account): readonly Line[] {
  const { orderCount, rewrittenOrderCount, completedCount, deliveryCount, lost, deadCount } = account
  return [
    line('orders', orderCount, `${rewrittenOrderCount} of them upserted again; one row each`),
    line('completed deliveries', completedCount, `of ${deliveryCount}`),
    line('lost', lost.length, 'accepted, and then unknown'),
    line('dead', deadCount, 'besides the conflicts'),
  ]
}

/** The last sentences: what the run proved, or what it did not. */
export function verdictText(account: Account, isProtected: boolean, repeat: string): string {
  const { problems } = account
  if (!isProtected) {
    return account.doubleCount > 0
      ? `Without the answers ${account.doubleCount} of ${account.deliveryCount} customers were charged more than once. With them: ${repeat}`
      : 'No double charge happened this time, although nothing prevented it.'
  }
  if (problems.length === 0) {
    return (
      `Every delivery is accounted for, and each of ${account.deliveryCount} payment attempts was charged exactly once.\n` +
      `The same deliveries without keys and answers: ${repeat}`
    )
  }
  const shown = problems.slice(0, maxShownProblems).map((problem) => `- ${problem}`)
  const more = problems.length > shown.length ? [`- … and ${problems.length - shown.length} more`] : []
  return [`The books do not agree:`, ...shown, ...more].join('\n')
}
