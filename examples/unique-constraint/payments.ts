/** The application's own table. Another database joins with a class of the same shape. */
import Database from 'better-sqlite3'

export interface Payments {
  /** One row per payment, whoever writes it, and how often. */
  upsert(paymentId: string, cents: number): Promise<void>
  all(): Promise<readonly { readonly paymentId: string; readonly cents: number }[]>
}

export class SqlitePayments implements Payments {
  readonly #db: Database.Database

  constructor(path: string) {
    this.#db = new Database(path)
    this.#db.pragma('journal_mode = WAL')
    this.#db.exec(
      'CREATE TABLE IF NOT EXISTS payments (payment_id TEXT NOT NULL UNIQUE, cents INTEGER NOT NULL) STRICT',
    )
  }

  async upsert(paymentId: string, cents: number): Promise<void> {
    // The constraint decides, not a look beforehand: between a look and an insert another worker may write.
    const insert = `INSERT INTO payments (payment_id, cents) VALUES (?, ?)
      ON CONFLICT (payment_id) DO UPDATE SET cents = excluded.cents`
    this.#db.prepare(insert).run(paymentId, cents)
  }

  async all(): Promise<readonly { readonly paymentId: string; readonly cents: number }[]> {
    const rows = this.#db.prepare('SELECT payment_id AS paymentId, cents FROM payments ORDER BY payment_id').all()
    return rows as { readonly paymentId: string; readonly cents: number }[]
  }

  close(): void {
    this.#db.close()
  }
}
