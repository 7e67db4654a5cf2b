/** The application: it changes an order and enqueues the message in one transaction. Another database joins likewise. */
import Database from 'better-sqlite3'
import type { ChokaQ } from 'chokaq'
import { publishChange } from './contract.ts'

export interface Shop {
  /** The row, its sequence and the job commit together, or none of them does. */
  change(chokaq: ChokaQ, orderId: string, status: string): Promise<void>
  statusOf(orderId: string): Promise<string | undefined>
}

interface OrderRow {
  readonly status: string
  readonly sequence: number
}

export class SqliteShop implements Shop {
  readonly #db: Database.Database

  constructor(path: string) {
    this.#db = new Database(path)
    this.#db.pragma('journal_mode = WAL')
    this.#db.pragma('synchronous = FULL') // what ChokaQ promises of a job must hold for this handle, too
    this.#db.exec(`CREATE TABLE IF NOT EXISTS orders (
      id TEXT PRIMARY KEY, status TEXT NOT NULL CHECK (status <> ''), sequence INTEGER NOT NULL) STRICT`)
  }

  async change(chokaq: ChokaQ, orderId: string, status: string): Promise<void> {
    const upsert = `INSERT INTO orders (id, status, sequence) VALUES (?, ?, 1)
      ON CONFLICT (id) DO UPDATE SET status = excluded.status, sequence = sequence + 1 RETURNING status, sequence`
    const write = this.#db.transaction(() => {
      // The sequence rises in the transaction that changes the order, so it has no gap and no equal.
      const { sequence } = this.#db.prepare(upsert).get(orderId, status) as OrderRow
      chokaq.enqueueSync(publishChange, { orderId, sequence, status }, { tx: this.#db })
      if (status === 'lost') throw new Error('an order is never lost')
    })
    write.immediate()
  }

  async statusOf(orderId: string): Promise<string | undefined> {
    const row = this.#db.prepare('SELECT status, sequence FROM orders WHERE id = ?').get(orderId)
    return (row as OrderRow | undefined)?.status
  }

  close(): void {
    this.#db.close()
  }
}
