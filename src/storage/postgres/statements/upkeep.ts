/** Dead rows, who cleans them, and what keeps them from being cleaned. */
import type { TableUpkeep, Upkeep } from '../../../core/inspector.ts'
import type { Session } from '../session.ts'

// The settings of the table win over those of the server.
const selectTables = `
  SELECT c.relname AS name, s.n_live_tup::float8 AS "liveCount", s.n_dead_tup::float8 AS "deadCount",
    floor(extract(epoch FROM greatest(s.last_vacuum, s.last_autovacuum)) * 1000)::float8 AS "cleanedAtMs",
    (current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean
      AND NOT coalesce('autovacuum_enabled=false' = ANY(c.reloptions) OR 'autovacuum_enabled=off' = ANY(c.reloptions),
        false))::int AS "isCleaned"
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_stat_user_tables s ON s.relid = c.oid
  WHERE c.relkind = 'r' AND c.relnamespace =
    (SELECT h.relnamespace FROM pg_catalog.pg_class h WHERE h.oid = 'chokaq.jobs_hot'::regclass)
  ORDER BY c.relname`

// A snapshot in another database keeps no dead row of this one; one that belongs to no database may be a replica's. What
// belongs to other roles shows only to a role that may see it. Who listens is in no view, but a session that listens does
// nothing else, so its last statement tells.
const selectRest = `
  SELECT chokaq.now_ms() AS "nowMs",
    (SELECT floor(max(extract(epoch FROM clock_timestamp() - a.xact_start)) * 1000)::float8
      FROM pg_catalog.pg_stat_activity a
      WHERE a.backend_xmin IS NOT NULL AND a.pid <> pg_backend_pid() AND a.backend_type <> 'autovacuum worker'
        AND (a.datname = current_database() OR a.datname IS NULL)
    ) AS "oldestSnapshotMs",
    (SELECT CASE WHEN bool_or(a.query = '<insufficient privilege>') THEN NULL
        ELSE (count(*) FILTER (WHERE a.query LIKE 'LISTEN "chokaq%' OR a.query LIKE '%pg_listening_channels()'))::int END
      FROM pg_catalog.pg_stat_activity a
      WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.backend_type = 'client backend'
    ) AS "listenerCount"`

interface TableRow extends Omit<TableUpkeep, 'cleanedAtMs' | 'isCleaned'> {
  readonly cleanedAtMs: number | null
  readonly isCleaned: number
}

interface RestRow {
  readonly nowMs: number
  readonly oldestSnapshotMs: number | null
  readonly listenerCount: number | null
}

export async function readUpkeep(session: Session): Promise<Upkeep> {
  const tables = await session.all<TableRow>(selectTables)
  const rest = await session.get<RestRow>(selectRest)
  return {
    nowMs: rest?.nowMs ?? 0,
    tables: tables.map((row) => ({
      ...row,
      cleanedAtMs: row.cleanedAtMs ?? undefined,
      isCleaned: row.isCleaned === 1,
    })),
    oldestSnapshotMs: rest?.oldestSnapshotMs ?? undefined,
    file: undefined,
    listenerCount: rest?.listenerCount ?? undefined,
  }
}
