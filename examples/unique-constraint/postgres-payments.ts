import type { Payments } from './payments.ts'

/** A pool or a client of the package pg. */
export interface Queryable {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: unknown[] }>
}

export class PostgresPayments implements Payments {
  readonly #db: Queryable

  constructor(db: Queryable) {
    this.#db = db
  }

  async createTable(): Promise<void> {
    await this.#db.query(
      'CREATE TABLE IF NOT EXISTS payments (payment_id text NOT NULL UNIQUE, cents integer NOT NULL)',
    )
  }

  async upsert(paymentId: string, cents: number): Promise<void> {
    const insert = `INSERT INTO payments (payment_id, cents) VALUES ($1, $2)
      ON CONFLICT (payment_id) DO UPDATE SET cents = excluded.cents`
    await this.#db.query(insert, [paymentId, cents])
  }

  async all(): Promise<readonly { readonly paymentId: string; readonly cents: number }[]> {
    const select = 'SELECT payment_id AS "paymentId", cents FROM payments ORDER BY payment_id'
    const { rows } = await this.#db.query(select)
    return rows as { readonly paymentId: string; readonly cents: number }[]
  }
}
