/**
 * The measuring stick: what better-sqlite3 does on the same tables, indexes and commits when nothing but the statements
 * runs. No verdicts, no guards, no counters, no promises: the engine cannot be faster than this, and the ratio says what
 * its safety costs.
 */
import Database from 'better-sqlite3'

const insertJob = `INSERT INTO chokaq_jobs_hot (id, state, type, queue, priority, run_at, token, generation, attempt,
    failure_count, crash_count, fetch_crash_count, suspect, fast_started, revision, created_at, key_hash, key_prefix,
    key_scope, key_computed, fingerprint, payload)
  VALUES (?, 'pending', 'bench.v1', 'default', 0, ?, 0, 1, 0, 0, 0, 0, 0, 0, 0, ?, NULL, NULL, NULL, 0, NULL, ?)`
const pickPending = `SELECT rowid, id FROM chokaq_jobs_hot WHERE state = 'pending' AND queue = 'default'
  AND type = 'bench.v1' ORDER BY priority DESC, run_at, id LIMIT ?`
const take = `UPDATE chokaq_jobs_hot SET state = 'processing', worker_id = 'bare', token = ?, fetched_at = ?,
  attempt = attempt + 1, started_at = ?, first_started_at = ?, when_interrupted = 'resume' WHERE rowid = ?`
/** What goes from hot into the archive. */
export const archivedColumns = `id, type, queue, priority, run_at, token, worker_id, generation, attempt, failure_count, crash_count,
  fetch_crash_count, revision, created_at, fetched_at, started_at, first_started_at, cancel_requested_at, tenant, key_hash,
  key_prefix, key_scope, key_computed, fingerprint, parent_id, trace_context, tags, payload, failure, history`
const archive = `INSERT INTO chokaq_jobs_archive (${archivedColumns}, outcome, finished_at)
  SELECT ${archivedColumns}, 'completed', ? FROM chokaq_jobs_hot WHERE rowid = ?`
const remove = 'DELETE FROM chokaq_jobs_hot WHERE rowid = ?'

export class BareLoop {
  readonly #db: Database.Database
  #counter = 0

  /** On a file that already has the tables. */
  constructor(path: string) {
    this.#db = new Database(path)
    this.#db.pragma('journal_mode = WAL')
    this.#db.pragma('synchronous = FULL')
  }

  /** One durable insert after the other. */
  enqueueEach(count: number, payload: string): void {
    const insert = this.#db.prepare(insertJob)
    for (let i = 0; i < count; i += 1) {
      this.#db.exec('BEGIN IMMEDIATE')
      insert.run(this.#id(), Date.now(), Date.now(), payload)
      this.#db.exec('COMMIT')
    }
  }

  enqueueMany(count: number, payload: string): void {
    const insert = this.#db.prepare(insertJob)
    this.#db.exec('BEGIN IMMEDIATE')
    for (let i = 0; i < count; i += 1) insert.run(this.#id(), Date.now(), Date.now(), payload)
    this.#db.exec('COMMIT')
  }

  /** Fetch and settle in batches, two commits a batch, until nothing is pending; how many. */
  drain(batchCount: number): number {
    const pick = this.#db.prepare<[number], { rowid: number }>(pickPending)
    const [taking, archiving, removing] = [take, archive, remove].map((sql) => this.#db.prepare(sql))
    let done = 0
    for (;;) {
      this.#db.exec('BEGIN IMMEDIATE')
      const rows = pick.all(batchCount)
      const now = Date.now()
      for (const { rowid } of rows) taking?.run((this.#counter += 1), now, now, now, rowid)
      this.#db.exec('COMMIT')
      if (rows.length === 0) return done
      this.#db.exec('BEGIN IMMEDIATE')
      for (const { rowid } of rows) {
        archiving?.run(Date.now(), rowid)
        removing?.run(rowid)
      }
      this.#db.exec('COMMIT')
      done += rows.length
    }
  }

  /** Fills hot or the archive by SQL alone. */
  fill(table: 'jobs_hot' | 'jobs_archive', count: number, payload: string): void {
    const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`
    const at = Date.now() - 1_000
    const shared = `'bench.v1', 'default', 0, ${at}`
    const hot = `INSERT INTO chokaq_jobs_hot (id, type, queue, priority, run_at, state, token, generation, attempt,
        failure_count, crash_count, fetch_crash_count, suspect, fast_started, revision, created_at, key_computed, payload)
      ${numbers} SELECT printf('00000000-0000-7000-8000-%012x', i), ${shared} + i / 1000, 'pending', 0, 1, 0, 0, 0, 0, 0, 0,
        0, ${at}, 0, ? FROM n`
    const old = `INSERT INTO chokaq_jobs_archive (id, type, queue, priority, run_at, outcome, token, generation, attempt,
        failure_count, crash_count, fetch_crash_count, revision, created_at, finished_at, key_computed, payload)
      ${numbers} SELECT printf('11111111-0000-7000-8000-%012x', i), ${shared}, 'completed', 1, 1, 1, 0, 0, 0, 0,
        ${at} - i, ${at}, 0, ? FROM n`
    this.#db.prepare(table === 'jobs_hot' ? hot : old).run(payload)
    this.#db.pragma('wal_checkpoint(TRUNCATE)')
  }

  close(): void {
    this.#db.close()
  }

  /** In the shape and order of the engine's ids. */
  #id(): string {
    this.#counter += 1
    const time = Date.now().toString(16).padStart(12, '0')
    return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${this.#counter.toString(16).padStart(12, '0')}`
  }
}
