/**
 * One connection: pinned settings, a deadline on every statement, and an honest answer to whether it is still good.
 *
 * Pinned with the first message: read committed (the statements are raced under it), the timeouts of the server, no
 * search path (every statement names its schema), no just-in-time compilation (it costs more than any statement here), a
 * page by index as cheap as the next one (every statement here is for a few rows that were touched a moment ago), no scan
 * of a whole table where an index serves, and durability. A pooler in transaction mode hands every transaction to another
 * session, so there nothing is set per session: transactions carry their settings with SET LOCAL, see transactions.ts.
 *
 * The server's statement timeout ends a slow statement and leaves the connection good. The client's deadline, a little
 * later, is for a server that does not answer at all: a half-open socket, a stopped machine. Then the connection is
 * thrown away.
 *
 * The few statements of a job's usual way are prepared once per connection, by name: planning them again was an eighth of
 * the server's work. A plan that stays must suit a table that has grown since, so none may scan one; a plan made over an
 * empty table would. Everything else is unnamed, and so is everything behind a pooler that hands each transaction to
 * another session. See docs/decisions/0012-named-statements.md.
 */
import type { PgClient, PgQuery, PgResult, PgTarget } from './pg-driver.ts'
import { rowTypes } from './pg-driver.ts'
import { isPlanLost, sqlStateOf, troubleOf } from './postgres-errors.ts'

export type Durability = 'full' | 'relaxed'

export interface ConnectionSettings {
  readonly target: PgTarget
  readonly durability: Durability
  /** Behind a pooler in transaction mode: nothing may be set per session. */
  readonly isPooled: boolean
  /** For the user's own statements: nothing is set, and nothing has a deadline but what is given with it. */
  readonly isBare?: boolean
  readonly statementDeadlineMs: number
  readonly lockTimeoutMs: number
  readonly connectDeadlineMs: number
}

/** How much longer the client waits than the server's own timeout. */
const clientGraceMs = 1_000
const keepAliveDelayMs = 10_000
/** How long a close waits for the other end; a half-open socket would never tell. */
const farewellMs = 1_000

const names = new Map<string, string>()

/** One name for each text in this process; there are a dozen. */
function nameOf(text: string): string {
  const known = names.get(text)
  if (known !== undefined) return known
  const made = `chokaq_${names.size + 1}`
  names.set(text, made)
  return made
}

export class Connection {
  readonly #client: PgClient
  #isBroken = false
  #keepsPlans: boolean
  readonly #onBroken: (connection: Connection) => void

  constructor(client: PgClient, keepsPlans: boolean, onBroken: (connection: Connection) => void) {
    this.#client = client
    this.#keepsPlans = keepsPlans
    this.#onBroken = onBroken
    // Without a listener an error of an idle connection would end the process.
    client.on('error', () => this.markBroken())
    client.on('end', () => this.markBroken())
  }

  get isBroken(): boolean {
    return this.#isBroken
  }

  /** The driver's own client: what a handler's transaction gets. */
  get handle(): unknown {
    return this.#client
  }

  /** I: none, T: in one, E: in a failed one; undefined where the driver cannot tell. */
  get transactionStatus(): string | undefined {
    return this.#client.getTransactionStatus?.() ?? undefined
  }

  markBroken(): void {
    if (this.#isBroken) return
    this.#isBroken = true
    this.#onBroken(this)
  }

  query<Row>(text: string, values?: readonly unknown[], deadlineMs?: number): Promise<readonly Row[]> {
    return this.#ask({
      text,
      types: rowTypes,
      ...(values === undefined ? {} : { values }),
      ...(deadlineMs === undefined ? {} : { query_timeout: deadlineMs }),
    })
  }

  /**
   * Plans the statement once. Behind a pooler that nobody told us of, the session may be another one each time: such a
   * statement has not run, so it runs without a name, and this connection names none any more.
   */
  async planned<Row>(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    if (!this.#keepsPlans) return this.query<Row>(text, values)
    try {
      return await this.#ask<Row>({ name: nameOf(text), text, types: rowTypes, values })
    } catch (error) {
      if (!isPlanLost(error)) throw error
      this.#keepsPlans = false
      if (this.transactionStatus !== 'I') throw error
      return this.query<Row>(text, values)
    }
  }

  async #ask<Row>(query: PgQuery): Promise<readonly Row[]> {
    try {
      const result = (await this.#client.query(query)) as PgResult | readonly PgResult[]
      // Several statements in one message give several results; nobody here reads more than the last.
      const last = Array.isArray(result) ? (result as readonly PgResult[]).at(-1) : (result as PgResult)
      return (last?.rows ?? []) as readonly Row[]
    } catch (error) {
      const trouble = troubleOf(error)
      const isAnswer = sqlStateOf(error) !== undefined || isPlanLost(error)
      if (trouble === 'connection' || !isAnswer) this.markBroken()
      throw error
    }
  }

  listen(listener: (payload: string) => void): void {
    this.#client.on('notification', (...[message]: readonly never[]) => {
      listener((message as { readonly payload?: string } | undefined)?.payload ?? '')
    })
  }

  /** An idle connection does not keep the process alive; a busy one does. */
  hold(isBusy: boolean): void {
    if (isBusy) this.#client.ref?.()
    else this.#client.unref?.()
  }

  /**
   * Says good-bye where somebody listens; a broken or busy one is cut. Never rejects. It keeps the process alive until it
   * is done: a program that has nothing else to do would end in the middle of `await close()`.
   */
  async close(): Promise<void> {
    this.#isBroken = true
    this.hold(true)
    let timer: NodeJS.Timeout | undefined
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, farewellMs)
    })
    await Promise.race([this.#client.end().catch(() => undefined), limit])
    clearTimeout(timer)
    this.hold(false)
  }
}

/** How long this side waits for a statement of the storage's own. */
export function clientDeadlineMs({ statementDeadlineMs }: ConnectionSettings): number {
  return statementDeadlineMs + clientGraceMs
}

export async function connect(
  settings: ConnectionSettings,
  name: string,
  onBroken: (connection: Connection) => void,
): Promise<Connection> {
  const { target, connectDeadlineMs, isPooled, isBare = false } = settings
  const client = new (target.clientClass())({
    application_name: `chokaq ${name}`,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveDelayMs,
    ...target.settings,
    connectionTimeoutMillis: connectDeadlineMs,
    ...(isBare ? {} : { query_timeout: clientDeadlineMs(settings) }),
  })
  const connection = new Connection(client, !isPooled && !isBare, onBroken)
  try {
    await client.connect()
    if (!isPooled && !isBare) await connection.query(sessionSettings(settings))
    return connection
  } catch (error) {
    await connection.close()
    throw error
  }
}

function sessionSettings(settings: ConnectionSettings): string {
  const { statementDeadlineMs, lockTimeoutMs, durability } = settings
  return `SET default_transaction_isolation = 'read committed'; SET default_transaction_deferrable = off;
    SET statement_timeout = ${statementDeadlineMs}; SET lock_timeout = ${lockTimeoutMs};
    SET idle_in_transaction_session_timeout = ${2 * statementDeadlineMs}; SET search_path = ''; SET jit = off;
    SET random_page_cost = 1.1; SET enable_seqscan = off;
    SET client_min_messages = warning; ${durabilitySetting(durability, 'SET')}`
}

/** `full` raises a server that does not wait for its disk; what waits for more (a replica) stays as it is. */
export function durabilitySetting(durability: Durability, set: 'SET' | 'SET LOCAL'): string {
  if (durability === 'relaxed') return `${set} synchronous_commit = off`
  return `SELECT pg_catalog.set_config('synchronous_commit', 'on', ${set === 'SET LOCAL'})
    WHERE pg_catalog.current_setting('synchronous_commit') = 'off'`
}

/** What a transaction behind a pooler sets for itself. */
export function transactionSettings(settings: ConnectionSettings): string {
  const { statementDeadlineMs, lockTimeoutMs, durability } = settings
  return `SET LOCAL statement_timeout = ${statementDeadlineMs}; SET LOCAL lock_timeout = ${lockTimeoutMs};
    SET LOCAL idle_in_transaction_session_timeout = ${2 * statementDeadlineMs}; SET LOCAL jit = off;
    SET LOCAL random_page_cost = 1.1;
    ${durabilitySetting(durability, 'SET LOCAL')}`
}
