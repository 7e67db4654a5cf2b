/** The application's own table, in the same SQLite file as the jobs. Its unique constraint is what guards the handler. */
import { betterSqlite3, type SqliteDatabase } from '../../storage/sqlite/database.ts'
import type { OrderPayload } from './jobs.ts'

const createTable = `CREATE TABLE IF NOT EXISTS shop_orders (
  payment_attempt_id TEXT NOT NULL UNIQUE,
  charge_id TEXT NOT NULL,
  amount_cents INTEGER NOT NULL,
  event TEXT NOT NULL,
  written_count INTEGER NOT NULL DEFAULT 1
) STRICT`

const upsert = `INSERT INTO shop_orders (payment_attempt_id, charge_id, amount_cents, event) VALUES (?, ?, ?, ?)
  ON CONFLICT (payment_attempt_id)
  DO UPDATE SET charge_id = excluded.charge_id, written_count = written_count + 1`

const selectAll = `SELECT payment_attempt_id AS paymentAttemptId, charge_id AS chargeId, amount_cents AS amountCents,
  written_count AS writtenCount FROM shop_orders`

export interface OrderRow {
  readonly paymentAttemptId: string
  readonly chargeId: string
  readonly amountCents: number
  readonly writtenCount: number
}

const retryMs = 3
const maxTries = 400

export class Orders {
  readonly #db: SqliteDatabase

  constructor(path: string) {
    this.#db = betterSqlite3.open(path)
    this.#db.exec('PRAGMA journal_mode = WAL')
    this.#db.exec('PRAGMA synchronous = FULL')
  }

  createTable(): void {
    this.#db.exec(createTable)
  }

  /** Waits without blocking while the workers write, as the storage does. */
  async upsert(order: OrderPayload): Promise<void> {
    const statement = this.#db.prepare(upsert)
    for (let tries = 1; ; tries += 1) {
      try {
        statement.run(order.paymentAttemptId, order.chargeId, order.amountCents, order.event)
        return
      } catch (error) {
        const isBusy = String((error as { readonly code?: unknown }).code).startsWith('SQLITE_BUSY')
        if (!isBusy || tries === maxTries) throw error
      }
      await new Promise((resolve) => setTimeout(resolve, retryMs))
    }
  }

  all(): readonly OrderRow[] {
    return this.#db.prepare<OrderRow>(selectAll).all()
  }

  close(): void {
    this.#db.close()
  }
}
