/**
 * The caller's own transaction: rows of the application and jobs commit together. Nothing here begins, commits or rolls
 * back, and an error of the database is passed on unchanged, because the transaction it ended is the caller's.
 *
 * Handles are told by what they can do, not by their class: the package may be there twice. A handle that is in no
 * transaction is refused, by its own word where it has one, else by asking twice when the transaction began: outside of
 * one, each statement is its own.
 */
import { ChokaQError } from '../../core/errors.ts'
import type { Queryable } from './session.ts'

type Method = (...values: readonly unknown[]) => unknown
type Handle = Readonly<Record<string, unknown>>

/** A transaction of a query builder, as fromDrizzle and fromKnex wrap it. */
export class WrappedTransaction {
  readonly query: Queryable['query']
  readonly isTransaction: boolean

  constructor(query: Queryable['query'], isTransaction: boolean) {
    this.query = query
    this.isTransaction = isTransaction
  }
}

/** Makes one SQL chunk of a text and its values: `sql` of drizzle-orm. */
export interface DrizzleSql {
  raw(text: string): unknown
  join(chunks: never[], separator?: never): unknown
  (strings: TemplateStringsArray, ...values: never[]): unknown
}

/**
 * A drizzle transaction for `enqueue(…, { tx })`.
 *
 * @example
 * await db.transaction(async (tx) => {
 *   await chokaq.enqueue(sendMail, { to }, { tx: fromDrizzle(tx, sql) })
 * })
 */
export function fromDrizzle(tx: unknown, sql: DrizzleSql): WrappedTransaction {
  const execute = methodOf(tx, 'execute')
  if (execute === undefined) throw unsupported('fromDrizzle', 'it has no execute()')
  const query = async <Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> => {
    // $1, $2, … become the values between the pieces of the text; drizzle numbers them itself.
    const pieces: unknown[] = []
    let end = 0
    for (const match of text.matchAll(/\$(\d+)/g)) {
      pieces.push(sql.raw(text.slice(end, match.index)), bound(sql, values[Number(match[1]) - 1]))
      end = match.index + match[0].length
    }
    pieces.push(sql.raw(text.slice(end)))
    return rowsOf<Row>(await execute(sql.join(pieces as never[])))
  }
  return new WrappedTransaction(query, methodOf(tx, 'rollback') !== undefined)
}

function bound(sql: DrizzleSql, value: unknown): unknown {
  return (sql as unknown as (strings: readonly string[], ...values: readonly unknown[]) => unknown)(['', ''], value)
}

/**
 * A knex transaction for `enqueue(…, { tx })`.
 *
 * @example
 * await knex.transaction(async (trx) => {
 *   await chokaq.enqueue(sendMail, { to }, { tx: fromKnex(trx) })
 * })
 */
export function fromKnex(trx: unknown): WrappedTransaction {
  const raw = methodOf(trx, 'raw')
  if (raw === undefined) throw unsupported('fromKnex', 'it has no raw()')
  const query = async <Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> => {
    // knex binds ? and names such as :name; a cast (::) and a question mark of the text itself are escaped.
    const bindings: unknown[] = []
    const sql = text.replaceAll('?', '\\?').replace(/\$(\d+)/g, (_, digits: string) => {
      bindings.push(values[Number(digits) - 1])
      return '?'
    })
    return rowsOf<Row>(await raw(sql, bindings))
  }
  return new WrappedTransaction(query, (trx as Handle).isTransaction === true)
}

interface UserTransaction {
  readonly queryable: Queryable
  /** Undefined where the handle cannot tell. */
  readonly isTransaction: boolean | undefined
}

/** Where statements of the caller's transaction run. Throws where it is none, or nothing that is known. */
export async function openUserTransaction(call: string, tx: unknown): Promise<Queryable> {
  const known = shapes.map((shape) => shape(tx)).find((found) => found !== undefined)
  if (known === undefined) {
    const problem =
      'it has none of the shapes that are known: a client of pg or PGlite (query), postgres.js (unsafe), Prisma ' +
      '($queryRawUnsafe), Kysely (executeQuery), or what fromDrizzle(tx, sql) and fromKnex(trx) give'
    throw unsupported(call, problem)
  }
  const { queryable, isTransaction } = known
  if (isTransaction ?? (await isOneTransaction(queryable))) return queryable
  throw new ChokaQError('CHOKAQ_NOT_IN_TRANSACTION', { call })
}

async function isOneTransaction(queryable: Queryable): Promise<boolean> {
  const began = (): Promise<readonly { readonly began: string }[]> =>
    queryable.query<{ readonly began: string }>('SELECT now()::text AS began')
  const [first] = await began()
  const [second] = await began()
  return first !== undefined && first.began === second?.began
}

const shapes: readonly ((tx: unknown) => UserTransaction | undefined)[] = [wrapped, kysely, prisma, postgresJs, pg]

function wrapped(tx: unknown): UserTransaction | undefined {
  return tx instanceof WrappedTransaction ? { queryable: tx, isTransaction: tx.isTransaction } : undefined
}

function kysely(tx: unknown): UserTransaction | undefined {
  const executeQuery = methodOf(tx, 'executeQuery')
  if (executeQuery === undefined) return undefined
  const query = async <Row>(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> => {
    const node = { kind: 'RawNode', sqlFragments: [sql], parameters: [] }
    const compiled = { sql, parameters: values, query: node, queryId: { queryId: 'chokaq' } }
    return rowsOf<Row>(await executeQuery(compiled))
  }
  const { isTransaction } = tx as Handle
  return { queryable: { query }, isTransaction: typeof isTransaction === 'boolean' ? isTransaction : undefined }
}

function prisma(tx: unknown): UserTransaction | undefined {
  const run = methodOf(tx, '$queryRawUnsafe')
  if (run === undefined) return undefined
  const query = async <Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
    rowsOf<Row>(await run(text, ...values))
  // The client inside a transaction cannot connect; from version 7 on it has a $transaction of its own.
  return { queryable: { query }, isTransaction: methodOf(tx, '$connect') === undefined ? undefined : false }
}

function postgresJs(tx: unknown): UserTransaction | undefined {
  const unsafe = methodOf(tx, 'unsafe')
  if (unsafe === undefined) return undefined
  const query = async <Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
    rowsOf<Row>(await unsafe(text, [...values]))
  const isInside = methodOf(tx, 'savepoint') !== undefined
  const isRoot = !isInside && methodOf(tx, 'begin') !== undefined
  return { queryable: { query }, isTransaction: isInside ? true : isRoot ? false : undefined }
}

function pg(tx: unknown): UserTransaction | undefined {
  const run = methodOf(tx, 'query')
  if (run === undefined) return undefined
  const query = async <Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
    rowsOf<Row>(await run(text, [...values]))
  // A pool gives each statement another connection; PGlite's root hands out transactions.
  const isRoot = 'totalCount' in (tx as object) || methodOf(tx, 'transaction') !== undefined
  if (isRoot) return { queryable: { query }, isTransaction: false }
  const status = methodOf(tx, 'getTransactionStatus')?.()
  return { queryable: { query }, isTransaction: status === 'T' ? true : status === 'I' ? false : undefined }
}

/** Drivers answer with a list of rows, or with an object that has one. */
function rowsOf<Row>(answer: unknown): readonly Row[] {
  if (Array.isArray(answer)) return answer as readonly Row[]
  const { rows } = (answer ?? {}) as { readonly rows?: unknown }
  return Array.isArray(rows) ? (rows as readonly Row[]) : []
}

/** The callable handles of postgres.js and knex are functions with methods. */
function methodOf(value: unknown, name: string): Method | undefined {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined
  const method = (value as Handle)[name]
  return typeof method === 'function' ? (method as Method).bind(value) : undefined
}

function unsupported(call: string, problem: string): ChokaQError {
  return new ChokaQError('CHOKAQ_TX_UNSUPPORTED', { call, problem })
}
