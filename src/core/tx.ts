/**
 * Transactions of the application that ChokaQ can write into, told by what they can do: no package of theirs is imported.
 * A storage refuses the shapes it cannot use (CHOKAQ_TX_UNSUPPORTED).
 */

/** The part of a better-sqlite3 or node:sqlite handle that ChokaQ uses inside the caller's transaction. */
export interface SqliteLike {
  prepare(sql: string): { run(...values: unknown[]): unknown; get(...values: unknown[]): unknown }
}

/** node-postgres, PGlite, and what ctx.transaction gives. */
export interface PgLike {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

/** postgres.js */
export interface PostgresJsLike {
  unsafe(text: string, values?: never[]): PromiseLike<unknown>
}

/** An interactive transaction of Prisma. */
export interface PrismaLike {
  $queryRawUnsafe(text: string, ...values: unknown[]): Promise<unknown>
}

/** A transaction of Kysely. */
export interface KyselyLike {
  executeQuery(query: never): Promise<{ rows: unknown[] }>
  readonly isTransaction: boolean
}

/** What fromDrizzle and fromKnex make. */
export interface AsyncTx {
  readonly isTransaction: boolean
  query(text: string, values?: readonly unknown[]): Promise<readonly unknown[]>
}

export type TxArg = AsyncTx | PgLike | PostgresJsLike | PrismaLike | KyselyLike
