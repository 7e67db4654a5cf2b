import type { ChokaQ } from 'chokaq'
import type { Pool } from 'pg'
import { publishChange } from './contract.ts'
import type { Shop } from './shop.ts'

export class PostgresShop implements Shop {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  async createTable(): Promise<void> {
    await this.#pool.query(
      'CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, status text NOT NULL, sequence integer NOT NULL)',
    )
  }

  async change(chokaq: ChokaQ, orderId: string, status: string): Promise<void> {
    const upsert = `INSERT INTO orders AS o (id, status, sequence) VALUES ($1, $2, 1)
      ON CONFLICT (id) DO UPDATE SET status = excluded.status, sequence = o.sequence + 1 RETURNING sequence`
    const tx = await this.#pool.connect()
    try {
      await tx.query('BEGIN')
      // The row stays locked until the commit, so sequences are given in the order of the changes.
      const { rows } = await tx.query<{ sequence: number }>(upsert, [orderId, status])
      await chokaq.enqueue(publishChange, { orderId, sequence: rows[0]?.sequence ?? 1, status }, { tx })
      if (status === 'lost') throw new Error('an order is never lost')
      await tx.query('COMMIT')
    } catch (error) {
      await tx.query('ROLLBACK')
      throw error
    } finally {
      tx.release()
    }
  }

  async statusOf(orderId: string): Promise<string | undefined> {
    const { rows } = await this.#pool.query<{ status: string }>('SELECT status FROM orders WHERE id = $1', [orderId])
    return rows[0]?.status
  }
}
