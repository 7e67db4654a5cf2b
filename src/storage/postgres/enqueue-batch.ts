/** A producer's batch: inserts, looks up what did not get in, and tries again where the reason is gone by then. */
import { CounterSum } from '../../core/counters.ts'
import { ChokaQError, isTransient } from '../../core/errors.ts'
import type { NewJob } from '../../core/job.ts'
import type { EnqueueVerdict } from '../../core/storage.ts'
import { bisected } from './batches.ts'
import { findHolders } from './statements/enqueue-verdicts.ts'
import { enqueueOnce, type Notification } from './statements/enqueue.ts'
import type { Unit } from './transactions.ts'

type Run = <T>(unit: Unit<T>) => Promise<T>
/** A notification where it is this process's turn to send one. */
type TakeTurn = () => Notification | undefined

const maxRounds = 10
/**
 * Once a batch has waited for somebody's lock, its parts wait this long: a row whose key a user's open transaction holds
 * must not make all others wait again at every halving.
 */
const partLockTimeoutMs = 25
const faults = { beforeCommit: 'enqueue-before-commit', committed: 'enqueue-committed' } as const

/** One verdict per job, in order. A row whose key is held by an open transaction is refused as busy, nothing written. */
export async function enqueueBatch(
  run: Run,
  jobs: readonly NewJob[],
  takeTurn: TakeTurn,
): Promise<readonly EnqueueVerdict[]> {
  const verdicts: (EnqueueVerdict | undefined)[] = jobs.map(() => undefined)
  for (let round = 0; round < maxRounds; round += 1) {
    for (const mayExist of [false, true]) {
      const at = indexesOf(jobs, (job, n) => job.mayExist === mayExist && verdicts[n] === undefined)
      const answers = await insert(run, pick(jobs, at), { mayExist, takeTurn })
      at.forEach((n, place) => (verdicts[n] = answers[place]))
    }
    const left = indexesOf(jobs, (_, n) => verdicts[n] === undefined)
    if (left.length === 0) break
    const found = await lookUp(run, pick(jobs, left))
    left.forEach((n, place) => (verdicts[n] = found[place]))
  }
  return verdicts.map(
    (verdict) => verdict ?? { kind: 'refused', error: new ChokaQError('CHOKAQ_STORAGE_BUSY', { waitedMs: 0 }) },
  )
}

function insert(
  run: Run,
  jobs: readonly NewJob[],
  { mayExist, takeTurn }: { readonly mayExist: boolean; readonly takeTurn: TakeTurn },
): Promise<readonly (EnqueueVerdict | undefined)[]> {
  return bisected<NewJob, EnqueueVerdict | undefined>(
    jobs,
    (rows, isWhole) =>
      run({
        ...faults,
        // Only a row that is recognised when it comes again may be sent again.
        isRepeatable: mayExist,
        isOneStatement: isWhole && !mayExist,
        ...(isWhole ? {} : { lockTimeoutMs: partLockTimeoutMs }),
        work: (tx) => enqueueOnce(tx, rows, isWhole && rows.some(isDue) ? takeTurn() : undefined),
      }),
    (_, error) => ({ kind: 'refused', error }),
  )
}

function isDue({ due }: NewJob): boolean {
  return due.kind === 'now'
}

async function lookUp(run: Run, jobs: readonly NewJob[]): Promise<readonly (EnqueueVerdict | undefined)[]> {
  let counters = new CounterSum()
  const found = await run({
    isOneStatement: true,
    isRepeatable: true,
    work: ({ session }) => {
      counters = new CounterSum()
      return findHolders(session, jobs, counters)
    },
  })
  try {
    await run({ isOneStatement: true, work: ({ session }) => session.addCounters(counters) })
  } catch (error) {
    // The answers are known and true; a storage that cannot count them just now must not take them back.
    if (!isTransient(error)) throw error
  }
  return found
}

function indexesOf(jobs: readonly NewJob[], isMeant: (job: NewJob, n: number) => boolean): readonly number[] {
  return jobs.flatMap((job, n) => (isMeant(job, n) ? [n] : []))
}

function pick(jobs: readonly NewJob[], indexes: readonly number[]): readonly NewJob[] {
  return indexes.flatMap((n) => jobs[n] ?? [])
}
