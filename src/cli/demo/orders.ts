/** The application's own table, where the jobs are too. Its unique constraint is what guards the handler. */
import { Lane } from '../../storage/postgres/lane.ts'
import { targetOf } from '../../storage/postgres/pg-driver.ts'
import { SchemaName } from '../../storage/postgres/schema-name.ts'
import { betterSqlite3, type SqliteDatabase } from '../../storage/sqlite/database.ts'
import type { OrderPayload } from './jobs.ts'

export interface OrderRow {
  readonly paymentAttemptId: string
  readonly chargeId: string
  readonly amountCents: number
  readonly writtenCount: number
}

export interface Orders {
  createTable(): Promise<void>
  upsert(order: OrderPayload): Promise<void>
  all(): Promise<readonly OrderRow[]>
  close(): Promise<void>
}

const columns = `payment_attempt_id TEXT NOT NULL UNIQUE, charge_id TEXT NOT NULL, amount_cents INTEGER NOT NULL,
  event TEXT NOT NULL, written_count INTEGER NOT NULL DEFAULT 1`
const onRepeat = `ON CONFLICT (payment_attempt_id)
  DO UPDATE SET charge_id = excluded.charge_id, written_count = o.written_count + 1`
const insert = (table: string): string =>
  `INSERT INTO ${table} AS o (payment_attempt_id, charge_id, amount_cents, event)`
const selectAll = (table: string): string => `SELECT payment_attempt_id AS "paymentAttemptId",
  charge_id AS "chargeId", amount_cents AS "amountCents", written_count AS "writtenCount" FROM ${table}`

function valuesOf({ paymentAttemptId, chargeId, amountCents, event }: OrderPayload) {
  return [paymentAttemptId, chargeId, amountCents, event] as const
}

const retryMs = 3
const maxTries = 400

export class OrdersInFile implements Orders {
  readonly #db: SqliteDatabase

  constructor(path: string) {
    this.#db = betterSqlite3.open(path)
    this.#db.exec('PRAGMA journal_mode = WAL')
    this.#db.exec('PRAGMA synchronous = FULL')
  }

  async createTable(): Promise<void> {
    this.#db.exec(`CREATE TABLE IF NOT EXISTS shop_orders (${columns}) STRICT`)
  }

  /** Waits without blocking while the workers write, as the storage does. */
  async upsert(order: OrderPayload): Promise<void> {
    const statement = this.#db.prepare(`${insert('shop_orders')} VALUES (?, ?, ?, ?) ${onRepeat}`)
    for (let tries = 1; ; tries += 1) {
      try {
        statement.run(...valuesOf(order))
        return
      } catch (error) {
        const isBusy = String((error as { readonly code?: unknown }).code).startsWith('SQLITE_BUSY')
        if (!isBusy || tries === maxTries) throw error
      }
      await new Promise((resolve) => setTimeout(resolve, retryMs))
    }
  }

  async all(): Promise<readonly OrderRow[]> {
    return this.#db.prepare<OrderRow>(selectAll('shop_orders')).all()
  }

  async close(): Promise<void> {
    this.#db.close()
  }
}

const deadlineMs = 5_000

export class OrdersOnServer implements Orders {
  readonly #lane: Lane
  readonly #schema: SchemaName

  constructor(url: string, schema: string) {
    this.#schema = new SchemaName(schema)
    const limits = { statementDeadlineMs: deadlineMs, lockTimeoutMs: deadlineMs, connectDeadlineMs: deadlineMs }
    this.#lane = new Lane({ target: targetOf(url), durability: 'full', isPooled: false, ...limits }, 'shop', 2)
  }

  async createTable(): Promise<void> {
    await this.#query(`CREATE TABLE IF NOT EXISTS chokaq.shop_orders (${columns})`)
  }

  async upsert(order: OrderPayload): Promise<void> {
    await this.#query(`${insert('chokaq.shop_orders')} VALUES ($1, $2, $3::integer, $4) ${onRepeat}`, valuesOf(order))
  }

  async all(): Promise<readonly OrderRow[]> {
    return this.#query<OrderRow>(selectAll('chokaq.shop_orders'))
  }

  /** With everything in it. */
  async dropSchema(): Promise<void> {
    await this.#query(`DROP SCHEMA IF EXISTS ${this.#schema.quoted} CASCADE`)
  }

  async close(): Promise<void> {
    await this.#lane.close()
  }

  #query<Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.#lane.use('orders', (connection) => connection.query<Row>(this.#schema.apply(text), values))
  }
}
