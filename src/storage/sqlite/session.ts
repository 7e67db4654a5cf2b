/** One connection with its prepared statements. Every statement of this storage runs through a session. */
import { assert } from '../../core/errors.ts'
import type { SqliteDatabase, SqliteStatement, SqlValue } from './database.ts'

const nextTokens = 'UPDATE chokaq_sequence SET token = token + ? WHERE id = 1 RETURNING token'

export class Session {
  readonly db: SqliteDatabase
  readonly #statements = new Map<string, SqliteStatement<unknown>>()
  readonly #tuples = new Map<string, SqliteStatement<unknown>>()

  constructor(db: SqliteDatabase) {
    this.db = db
  }

  /** How many rows it changed. */
  run(sql: string, ...values: readonly SqlValue[]): number {
    return Number(this.statement(sql).run(...values).changes)
  }

  get<Row>(sql: string, ...values: readonly SqlValue[]): Row | undefined {
    return this.statement<Row>(sql).get(...values)
  }

  all<Row>(sql: string, ...values: readonly SqlValue[]): readonly Row[] {
    return this.statement<Row>(sql).all(...values)
  }

  /** Prepared once for each text. Texts are constants, save lists of filters, of which there are few. */
  statement<Row>(sql: string): SqliteStatement<Row> {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known as SqliteStatement<Row>
    const made = this.db.prepare<Row>(sql)
    this.#statements.set(sql, made)
    return made
  }

  /** As `statement`, with rows as arrays. */
  tuples<Row extends readonly SqlValue[]>(sql: string): SqliteStatement<Row> {
    const known = this.#tuples.get(sql)
    if (known !== undefined) return known as SqliteStatement<Row>
    const made = this.db.prepareTuples<Row>(sql)
    this.#tuples.set(sql, made)
    return made
  }

  /** Reserves `count` lease tokens in the running transaction; the first of them. */
  reserveTokens(count: number): number {
    const row = this.get<{ readonly token: number }>(nextTokens, count)
    assert(row !== undefined, 'the sequence of lease tokens has its row')
    return row.token - count + 1
  }
}
