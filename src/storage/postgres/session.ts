/** Where statements run: an own connection, or a transaction of the user's. Every statement goes through a session. */
import type { CountedRow, CounterSum } from '../../core/counters.ts'
import type { SchemaName } from './schema-name.ts'

export interface Queryable {
  query<Row>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /** The same, where the plan is kept for the next time. */
  planned?<Row>(text: string, values: readonly unknown[]): Promise<readonly Row[]>
}

// Only inserts: two transactions that count the same thing never wait for each other. The sweep adds it up.
const addCounters = `INSERT INTO chokaq.worker_counters (at, value, name, queue, type, label)
  SELECT c.now, r.value, r.name, r.queue, r.type, r.label
  FROM (SELECT chokaq.now_ms() AS now OFFSET 0) c CROSS JOIN
    json_to_recordset($1::text::json) AS r(value bigint, name text, queue text, type text, label text)`

export class Session {
  /** For statements of the application itself, which name their own tables. */
  readonly source: Queryable
  readonly #schema: SchemaName

  constructor(source: Queryable, schema: SchemaName) {
    this.source = source
    this.#schema = schema
  }

  all<Row>(sql: string, ...values: readonly unknown[]): Promise<readonly Row[]> {
    return this.source.query<Row>(this.#schema.apply(sql), values)
  }

  /** For a statement of the usual way of a job, whose plan suits every size of the tables and all values. */
  planned<Row>(sql: string, ...values: readonly unknown[]): Promise<readonly Row[]> {
    const { source } = this
    const text = this.#schema.apply(sql)
    return source.planned === undefined ? source.query<Row>(text, values) : source.planned<Row>(text, values)
  }

  async get<Row>(sql: string, ...values: readonly unknown[]): Promise<Row | undefined> {
    return (await this.all<Row>(sql, ...values))[0]
  }

  async addCounters(sum: CounterSum): Promise<void> {
    await this.addCounterRows(sum.rows())
  }

  async addCounterRows(rows: readonly CountedRow[]): Promise<void> {
    if (rows.length > 0) await this.all(addCounters, JSON.stringify(rows))
  }
}
