/**
 * Acts on everything a filter finds: first a look at how many and which, then in calls of at most 1,000 jobs, each with
 * the place where the next one goes on. Jobs that come in meanwhile are newer than that place and stay as they are.
 */
import type { JobFilter } from '../../core/inspector.ts'
import type { JobRecord, Pillar } from '../../core/job.ts'
import type { Context } from '../context.ts'
import { requireRole } from '../gate.ts'
import { DeckRefusal, invalid } from '../problem.ts'
import { filterOfBody, jobFilter, noteOf, optionalText, wholeOf, type Body } from '../request.ts'
import { jobSummary } from '../views/job.ts'
import { type BulkAct, type BulkAnswer, bulkActs, type BulkPreview } from '../wire-jobs.ts'
import { resurrectAnswer } from './job-acts.ts'

const maxCounted = 10_000
const sampleSize = 10
const pageSize = 50
const maxCursorLength = 500
/** A call that takes longer answers with what it did, so that no proxy gives up on it. */
const maxCallMs = 5_000

interface Target {
  readonly act: BulkAct
  readonly pillar: Pillar
  readonly filter: JobFilter
}

function targetOf(context: Context, body: Body): Target {
  const text = optionalText(body, 'act')
  const act = bulkActs.find((each) => each === text)
  if (act === undefined) throw invalid(`act must be one of ${bulkActs.join(', ')}.`)
  if (act === 'purge') requireRole(context.identity.role, 'admin')
  const pillar = act === 'cancel' || act === 'retry-now' ? 'hot' : 'dlq'
  const filter = jobFilter(pillar, filterOfBody(body['filter'] ?? {}))
  return { act, pillar, filter: act === 'retry-now' ? { ...filter, state: 'scheduled' } : filter }
}

export async function preview(context: Context, body: Body): Promise<BulkPreview> {
  const target = targetOf(context, body)
  const { act, pillar, filter } = target
  const [counted, sample] = await Promise.all([
    context.reads.count({ pillar, filter, limit: maxCounted }),
    context.reads.list({ pillar, filter, limit: sampleSize, cursor: undefined }),
  ])
  return {
    ...counted,
    sample: sample.jobs.map((job) => jobSummary(job, context.config.redaction)),
    phrase: phraseOf(act, counted),
  }
}

function phraseOf(
  act: BulkAct,
  { count, isExact }: { readonly count: number; readonly isExact: boolean },
): string | null {
  if (act !== 'purge' && act !== 'cancel') return null
  return `${act} ${count}${isExact ? '' : '+'}`
}

export async function run(context: Context, body: Body): Promise<BulkAnswer> {
  const target = targetOf(context, body)
  const limit = wholeOf(body, 'limit', 1, 1_000)
  const cursor = optionalText(body, 'cursor', maxCursorLength)
  await requirePhrase(context, target, optionalText(body, 'phrase'), cursor)
  const work = new BulkRun(context, target, noteOf(body))
  return work.run(limit, cursor)
}

/**
 * Typed once, and compared with the count of this moment: the person confirms what is there, not what was there. Later
 * calls go on with what was confirmed.
 */
async function requirePhrase(
  { reads }: Context,
  { act, pillar, filter }: Target,
  phrase: string | undefined,
  cursor: string | undefined,
): Promise<void> {
  if (act !== 'purge' && act !== 'cancel') return
  if (cursor !== undefined) {
    if (new RegExp(`^${act} \\d+\\+?$`).test(phrase ?? '')) return
    throw new DeckRefusal(400, 'confirmation-needed', 'Send the phrase that was typed with every call.')
  }
  const now = await reads.count({ pillar, filter, limit: maxCounted })
  const wanted = phraseOf(act, now) ?? ''
  const typed = new RegExp(`^${act} (\\d+)(\\+?)$`).exec(phrase ?? '')
  // Fewer than were confirmed is fine: jobs end by themselves. More never is.
  const covers = typed !== null && (typed[2] === '+' || (now.isExact && now.count <= Number(typed[1])))
  if (covers) return
  const title =
    phrase === undefined
      ? `Type "${wanted}" to confirm.`
      : `It is "${wanted}" by now, not "${phrase.slice(0, 40)}": look at the preview again.`
  throw new DeckRefusal(409, 'confirmation-needed', title)
}

class BulkRun {
  readonly #context: Context
  readonly #target: Target
  readonly #note: string
  readonly #refused = new Map<string, number>()
  #doneCount = 0

  constructor(context: Context, target: Target, note: string) {
    this.#context = context
    this.#target = target
    this.#note = note
  }

  async run(limit: number, from: string | undefined): Promise<BulkAnswer> {
    const { reads, runtime } = this.#context
    const { pillar, filter } = this.#target
    const sinceMs = runtime.clock.monotonicMs()
    let cursor = from
    let left = limit
    do {
      const page = await reads.list({ pillar, filter, limit: Math.min(pageSize, left), cursor })
      await this.#apply(page.jobs)
      left -= page.jobs.length
      cursor = page.nextCursor
    } while (cursor !== undefined && left > 0 && runtime.clock.monotonicMs() - sinceMs < maxCallMs)
    const refused = [...this.#refused].map(([why, count]) => ({ why, count }))
    return { doneCount: this.#doneCount, refused, nextCursor: cursor ?? null }
  }

  async #apply(jobs: readonly JobRecord[]): Promise<void> {
    const { chokaq } = this.#context
    const by = this.#context.by(this.#note)
    if (this.#target.act === 'purge') {
      const doubtful = jobs.filter(({ inDoubt }) => inDoubt)
      const ids = jobs.filter(({ inDoubt }) => !inDoubt).map(({ id }) => id)
      const count = ids.length === 0 ? 0 : await chokaq.dlq.purge({ ids }, by)
      this.#doneCount += count
      this.#refuse('It is in doubt: decide its review first.', doubtful.length)
      this.#refuse('It had left the DLQ meanwhile.', ids.length - count)
      return
    }
    for (const { id } of jobs) {
      const why = await this.#one(id)
      if (why === undefined) this.#doneCount += 1
      else this.#refuse(why, 1)
    }
  }

  /** Why nothing was done; undefined where it was. */
  async #one(id: string): Promise<string | undefined> {
    const { chokaq } = this.#context
    const by = this.#context.by(this.#note)
    switch (this.#target.act) {
      case 'cancel': {
        const { kind } = await chokaq.jobs.cancel(id, by)
        return kind === 'cancelled' || kind === 'requested' ? undefined : 'It had ended meanwhile, or is in doubt.'
      }
      case 'retry-now':
        return (await chokaq.jobs.retryNow(id, by)) ? undefined : 'It was not scheduled any more.'
      case 'resurrect': {
        const verdict = await chokaq.dlq.resurrect(id, { mode: 'continue' }, by)
        if (verdict.kind === 'not-found') return 'It had left the DLQ meanwhile.'
        const { done, title } = resurrectAnswer(verdict)
        // The id of a holder would make a reason of its own for every job.
        return done ? undefined : title.replace(/ (?:active )?job [\w-]+/, ' another job')
      }
      case 'purge':
        return undefined
    }
  }

  #refuse(why: string, count: number): void {
    if (count > 0) this.#refused.set(why, (this.#refused.get(why) ?? 0) + count)
  }
}
