/**
 * The ledger of effects. One batch is one transaction of a few statements, however many requests it has, so the outcome
 * of one call and the intent of the next share a commit.
 *
 * An intent needs the lease: the jobs' rows are locked FOR SHARE by (id, token, processing) in the transaction that
 * inserts it, so whoever ends or takes the job waits for the intent, and sees it in the statement after its own lock. An
 * outcome needs only its own intent's id: it is evidence, whoever holds the lease. All rows of an effect are locked before
 * one of them is closed: of two calls that both report success, the second must see the first.
 *
 * Nobody waits for a lock of somebody else: what is locked (the job's row by whoever cancels or settles it, the effect's
 * rows by a handler's own open transaction) is skipped, and its request alone is refused as busy. Its caller asks again;
 * the batch goes on.
 *
 * The verdicts are those of one request after the other. Requests that touch different effects do not meet, so they share
 * statements, by kind: looks, intents, memos, outcomes. A request that meets an earlier one of the batch at a place that
 * this order does not keep (two outcomes of one effect, a look after an intent) goes into a later round.
 */
import { ChokaQError } from '../../../core/errors.ts'
import { leaseId } from '../../../core/lease.ts'
import type { LedgerRef, LedgerRequest, LedgerVerdict } from '../../../core/ledger.ts'
import type { Session } from '../session.ts'
import { missingVerdict, type Transaction } from '../transactions.ts'
import { namesOf, openAll } from './ledger-intents.ts'
import { recallAll, rememberAll } from './ledger-memos.ts'
import { closeAll, lockEffectsOf, type Closable } from './ledger-outcomes.ts'
import { effectId, roundsOf, type Placed, type RequestOf } from './ledger-rounds.ts'
import { isUuid } from './uuid.ts'

/**
 * Returns one verdict per request, in order. Who: the owner for all but `close`; `close`: whoever made the call.
 * `mayWait`: the transaction is not shared with other jobs, so a lock of somebody else is waited for.
 */
export async function ledger(
  { session }: Transaction,
  requests: readonly LedgerRequest[],
  { mayWait = false }: { readonly mayWait?: boolean } = {},
): Promise<readonly LedgerVerdict[]> {
  if (requests.length === 0) return []
  return new Batch(session, requests, mayWait).apply()
}

class Batch {
  readonly #session: Session
  readonly #requests: readonly LedgerRequest[]
  readonly #mayWait: boolean
  readonly #verdicts: (LedgerVerdict | undefined)[]
  /** By the intent's id, once its effect is locked. */
  readonly #closable = new Map<string, Closable>()
  readonly #opened: ReadonlyMap<string, LedgerRef>
  readonly #openedEffects: ReadonlySet<string>

  constructor(session: Session, requests: readonly LedgerRequest[], mayWait: boolean) {
    this.#session = session
    this.#requests = requests
    this.#mayWait = mayWait
    this.#verdicts = requests.map(() => undefined)
    this.#opened = new Map(
      requests.flatMap((request) => (request.kind === 'open' ? [[request.id, request.ref] as const] : [])),
    )
    this.#openedEffects = new Set(Array.from(this.#opened.values(), effectId))
  }

  async apply(): Promise<readonly LedgerVerdict[]> {
    const leases = await lockLeases(this.#session, this.#requests, this.#mayWait)
    await this.#lockEffectsOf(this.#requests)
    const refOf = (id: string): LedgerRef | undefined => this.#closable.get(id)?.ref ?? this.#opened.get(id)
    const left = this.#requests.flatMap((request, n): readonly Placed[] => {
      const verdict = refusal(request, leases, refOf)
      if (verdict === undefined) return [{ n, request }]
      this.#verdicts[n] = verdict
      return []
    })
    for (const round of roundsOf(left, refOf)) await this.#applyRound(round)
    return this.#verdicts.map((verdict) => {
      if (verdict === undefined) throw missingVerdict('a request of the ledger')
      return verdict
    })
  }

  async #applyRound(round: readonly Placed[]): Promise<void> {
    await this.#answer('names', round, namesOf)
    await this.#answer('recall', round, recallAll)
    await this.#answer('open', round, openAll)
    await this.#answer('remember', round, rememberAll)
    await this.#answer('close', round, (session, requests) => this.#close(session, requests))
  }

  async #answer<K extends LedgerRequest['kind']>(
    kind: K,
    round: readonly Placed[],
    apply: (session: Session, requests: readonly RequestOf<K>[]) => Promise<readonly LedgerVerdict[]>,
  ): Promise<void> {
    const placed = round.filter((each): each is Placed<RequestOf<K>> => each.request.kind === kind)
    if (placed.length === 0) return
    const requests = placed.map(({ request }) => request)
    const answers = await apply(this.#session, requests)
    placed.forEach(({ n }, at) => (this.#verdicts[n] = answers[at]))
  }

  async #close(session: Session, requests: readonly RequestOf<'close'>[]): Promise<readonly LedgerVerdict[]> {
    // Intents of this very batch could not be locked before they were inserted.
    await this.#lockEffectsOf(requests.filter(({ id }) => !this.#closable.has(id)))
    const free = requests.filter(({ id }) => this.#closable.get(id)?.isBusy === false)
    const isAlone = ({ id }: RequestOf<'close'>): boolean => this.#closable.get(id)?.isAlone === true
    const doubles = await closeAll(session, free, isAlone)
    return requests.map((request) =>
      this.#closable.get(request.id)?.isBusy === true ? busy() : { kind: 'closed', double: doubles.has(request) },
    )
  }

  async #lockEffectsOf(requests: readonly LedgerRequest[]): Promise<void> {
    const ids = requests.flatMap((request) => (request.kind === 'close' && isUuid(request.id) ? [request.id] : []))
    for (const [id, found] of await lockEffectsOf(this.#session, ids, this.#mayWait)) {
      // Where this batch opens an intent of the effect, it is not alone for long.
      this.#closable.set(id, { ...found, isAlone: found.isAlone && !this.#openedEffects.has(effectId(found.ref)) })
    }
  }
}

/** The verdict of a request that is not to be applied. */
function refusal(
  request: LedgerRequest,
  leases: ReadonlyMap<string, 'owned' | 'busy'>,
  refOf: (id: string) => LedgerRef | undefined,
): LedgerVerdict | undefined {
  if (request.kind === 'close') {
    // Pruned with its job, or never committed: there is nothing to close.
    return refOf(request.id) === undefined ? { kind: 'closed', double: false } : undefined
  }
  const state = leases.get(leaseId(request.lease))
  if (state === 'owned') return undefined
  return state === 'busy' ? busy() : { kind: 'lost' }
}

function busy(): LedgerVerdict {
  return { kind: 'refused', error: new ChokaQError('CHOKAQ_STORAGE_BUSY', { waitedMs: 0 }) }
}

// ---- leases

const owned = `SELECT id::text AS id, token FROM chokaq.jobs_hot
  WHERE id = ANY($1::uuid[]) AND token = ANY($2::bigint[]) AND state = 'processing'`
const shareOwned = `${owned} ORDER BY id FOR SHARE`
const shareFree = `${shareOwned} SKIP LOCKED`

/** What is absent is lost. */
async function lockLeases(
  session: Session,
  requests: readonly LedgerRequest[],
  mayWait: boolean,
): Promise<ReadonlyMap<string, 'owned' | 'busy'>> {
  const wanted = new Map(
    requests.flatMap((request) =>
      request.kind === 'close' || !isUuid(request.lease.jobId)
        ? []
        : [[leaseId(request.lease), request.lease] as const],
    ),
  )
  const states = new Map<string, 'owned' | 'busy'>()
  const look = async (sql: string, state: 'owned' | 'busy'): Promise<void> => {
    const leases = [...wanted.values()].filter((lease) => !states.has(leaseId(lease)))
    if (leases.length === 0) return
    const ids = leases.map(({ jobId }) => jobId)
    const tokens = leases.map(({ token }) => token)
    const rows = await session.all<{ readonly id: string; readonly token: number }>(sql, ids, tokens)
    for (const { id, token } of rows) states.set(leaseId({ jobId: id, token }), state)
  }
  await look(mayWait ? shareOwned : shareFree, 'owned')
  // What was not locked is gone, or somebody has it at this moment.
  if (!mayWait) await look(owned, 'busy')
  return states
}
