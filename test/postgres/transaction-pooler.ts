// A pooler in transaction mode, as far as its clients can tell: a few sessions of the server, and each transaction on
// whichever was free the longest. So two transactions of one client hardly ever meet the same session, and what one of
// them leaves there is found by somebody else.
import pg from 'pg'
import type { PgPoolLike } from 'chokaq/postgres'

export interface TransactionPooler {
  /** For `postgres(pool, { pooler: 'transaction' })`. */
  readonly pool: PgPoolLike
  readonly sessions: readonly pg.Client[]
  /** How many transactions each session had. */
  readonly counts: readonly number[]
  close(): Promise<void>
}

export async function transactionPooler(url: string, sessionCount: number): Promise<TransactionPooler> {
  const sessions = Array.from({ length: sessionCount }, () => new pg.Client({ connectionString: url }))
  for (const session of sessions) session.on('error', () => undefined)
  await Promise.all(sessions.map((session) => session.connect()))
  const counts = sessions.map(() => 0)
  const free = [...sessions]
  const line: ((session: pg.Client) => void)[] = []

  const take = async (): Promise<pg.Client> => {
    const session = free.shift() ?? (await new Promise<pg.Client>((resolve) => void line.push(resolve)))
    const at = sessions.indexOf(session)
    counts[at] = (counts[at] ?? 0) + 1
    return session
  }
  const giveBack = (session: pg.Client): void => {
    const next = line.shift()
    if (next === undefined) free.push(session)
    else next(session)
  }

  class PooledClient {
    /** Of the transaction that is open. */
    #session: pg.Client | undefined
    #last: Promise<unknown> = Promise.resolve()

    async connect(): Promise<void> {
      await this.#last
    }

    /** One statement after the other, as a connection has it. */
    query(...args: readonly unknown[]): Promise<unknown> {
      const answer = this.#last.then(() => this.#run(args))
      this.#last = answer.catch(() => undefined)
      return answer
    }

    async #run(args: readonly unknown[]): Promise<unknown> {
      const session = this.#session ?? (await take())
      this.#session = session
      try {
        return await (session.query as (...values: unknown[]) => Promise<unknown>).apply(session, [...args])
      } finally {
        if (session.getTransactionStatus() === 'I') {
          this.#session = undefined
          giveBack(session)
        }
      }
    }

    getTransactionStatus(): string | null {
      return this.#session?.getTransactionStatus() ?? 'I'
    }

    on(): this {
      return this
    }

    async end(): Promise<void> {
      await this.#last
      if (this.#session !== undefined) await this.query('ROLLBACK')
    }
  }

  return {
    pool: Object.assign({ options: {}, Client: PooledClient }, { connect: () => undefined }),
    sessions,
    counts,
    close: async () => void (await Promise.all(sessions.map((session) => session.end()))),
  }
}
