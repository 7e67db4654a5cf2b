-- The three pillars, what a key leaves behind, and what operators see. The schema name written here stands for the one
-- that is configured. Times are milliseconds since 1970, as in every other storage, so that no session's time zone or
-- date style can change what they mean. In each row the numbers stand first and the large texts last.

-- The one source of time. A statement asks it once, so that everything it writes has the same time.
CREATE FUNCTION chokaq.now_ms() RETURNS bigint LANGUAGE sql VOLATILE
  AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Lease tokens come from here and from nowhere else: one rising number per database.
CREATE SEQUENCE chokaq.lease_token AS bigint MINVALUE 1 CACHE 1;

CREATE TABLE chokaq.jobs_hot (
  id uuid PRIMARY KEY,
  run_at bigint NOT NULL,
  token bigint NOT NULL DEFAULT 0,
  created_at bigint NOT NULL,
  fetched_at bigint,
  started_at bigint,
  first_started_at bigint,
  cancel_requested_at bigint,
  generation integer NOT NULL,
  attempt integer NOT NULL DEFAULT 0,
  failure_count integer NOT NULL DEFAULT 0,
  crash_count integer NOT NULL DEFAULT 0,
  fetch_crash_count integer NOT NULL DEFAULT 0,
  -- Stamped at start, so that a rescue decides without the code.
  crash_budget integer,
  fetch_crash_budget integer,
  revision integer NOT NULL DEFAULT 0,
  priority smallint NOT NULL,
  -- It was running when a worker died: no fast start any more, and one at a time in each worker.
  suspect boolean NOT NULL DEFAULT false,
  -- The fetch itself started it, so a crash does not prove that its handler ran.
  fast_started boolean NOT NULL DEFAULT false,
  -- The worker computed the key of a raw enqueue.
  key_computed boolean NOT NULL DEFAULT false,
  state text NOT NULL,
  type text NOT NULL,
  queue text NOT NULL,
  worker_id text,
  when_interrupted text,
  tenant text,
  key_hash bytea,
  key_prefix text,
  key_scope text,
  fingerprint text,
  parent_id uuid,
  trace_context text,
  tags text[],
  -- json and not jsonb: it is kept to the letter, and nobody here looks inside.
  payload json NOT NULL,
  failure text,
  history text,
  -- Three constraints and not twenty: every version of a row is held against each, and a fetch writes a version.
  CONSTRAINT jobs_hot_states CHECK (CASE state
    WHEN 'processing' THEN worker_id IS NOT NULL AND token > 0 AND fetched_at IS NOT NULL AND started_at IS NOT NULL
      AND first_started_at IS NOT NULL AND attempt >= 1 AND when_interrupted IS NOT NULL
    WHEN 'fetched' THEN worker_id IS NOT NULL AND token > 0 AND fetched_at IS NOT NULL AND NOT fast_started
    WHEN 'pending' THEN worker_id IS NULL AND NOT fast_started
    WHEN 'scheduled' THEN worker_id IS NULL AND NOT fast_started
    ELSE false END),
  CONSTRAINT jobs_hot_values CHECK (token >= 0 AND generation >= 1 AND attempt >= 0 AND failure_count >= 0
    AND crash_count >= 0 AND fetch_crash_count >= 0 AND revision >= 0 AND priority BETWEEN -1000 AND 1000
    AND type <> '' AND queue <> '' AND (when_interrupted IS NULL OR when_interrupted IN ('resume', 'review'))),
  CONSTRAINT jobs_hot_keys CHECK (CASE WHEN key_hash IS NULL
    THEN key_prefix IS NULL AND key_scope IS NULL AND NOT key_computed
    ELSE key_prefix IS NOT NULL AND key_scope IS NOT NULL END)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1);

-- The claim: one hot row per key.
CREATE UNIQUE INDEX jobs_hot_key ON chokaq.jobs_hot (key_hash) WHERE key_hash IS NOT NULL;
-- Fetch reads the front of one ordered lane per type.
CREATE INDEX jobs_hot_pending ON chokaq.jobs_hot (queue, type, priority DESC, run_at, id) WHERE state = 'pending';
CREATE INDEX jobs_hot_scheduled ON chokaq.jobs_hot (run_at, queue) WHERE state = 'scheduled';
CREATE INDEX jobs_hot_owned ON chokaq.jobs_hot (worker_id, queue) WHERE worker_id IS NOT NULL;
CREATE INDEX jobs_hot_cancel ON chokaq.jobs_hot (worker_id) WHERE cancel_requested_at IS NOT NULL;
-- Lists. What a worker owns is left out, so that a fetch does not write here: it is little, and read beside it.
CREATE INDEX jobs_hot_newest ON chokaq.jobs_hot (created_at, id) WHERE worker_id IS NULL;

CREATE TABLE chokaq.jobs_archive (
  id uuid PRIMARY KEY,
  run_at bigint NOT NULL,
  token bigint NOT NULL,
  created_at bigint NOT NULL,
  fetched_at bigint,
  started_at bigint,
  first_started_at bigint,
  cancel_requested_at bigint,
  finished_at bigint NOT NULL,
  -- Set on a stub: what `keep` left of a job, so that a repeated reply is recognised.
  expires_at bigint,
  generation integer NOT NULL,
  attempt integer NOT NULL,
  failure_count integer NOT NULL,
  crash_count integer NOT NULL,
  fetch_crash_count integer NOT NULL,
  revision integer NOT NULL,
  priority smallint NOT NULL,
  key_computed boolean NOT NULL,
  outcome text NOT NULL,
  type text NOT NULL,
  queue text NOT NULL,
  worker_id text,
  tenant text,
  key_hash bytea,
  key_prefix text,
  key_scope text,
  fingerprint text,
  parent_id uuid,
  duplicate_of uuid,
  trace_context text,
  tags text[],
  payload json,
  result json,
  failure text,
  history text,
  CONSTRAINT jobs_archive_values CHECK ((expires_at IS NULL) = (payload IS NOT NULL) AND CASE outcome
    WHEN 'completed' THEN true
    WHEN 'cancelled' THEN true
    WHEN 'skipped' THEN duplicate_of IS NOT NULL
    ELSE false END)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX jobs_archive_newest ON chokaq.jobs_archive (created_at, id);
CREATE INDEX jobs_archive_finished ON chokaq.jobs_archive (queue, finished_at) WHERE expires_at IS NULL;
CREATE INDEX jobs_archive_stub ON chokaq.jobs_archive (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE chokaq.jobs_dlq (
  id uuid PRIMARY KEY,
  run_at bigint NOT NULL,
  token bigint NOT NULL,
  created_at bigint NOT NULL,
  fetched_at bigint,
  started_at bigint,
  first_started_at bigint,
  cancel_requested_at bigint,
  finished_at bigint NOT NULL,
  generation integer NOT NULL,
  attempt integer NOT NULL,
  failure_count integer NOT NULL,
  crash_count integer NOT NULL,
  fetch_crash_count integer NOT NULL,
  revision integer NOT NULL CHECK (revision >= 1),
  priority smallint NOT NULL,
  key_computed boolean NOT NULL,
  -- Only a decision of a person ends the doubt: such a row is never pruned or purged.
  in_doubt boolean NOT NULL,
  reason text NOT NULL CHECK (reason IN ('MaxRetriesExceeded', 'FatalError', 'Timeout', 'Interrupted',
    'RetryLifetimeExpired', 'Rejected', 'InDoubt', 'CompleteConflict', 'KeyReused', 'EmptyKey', 'ReviewRequested')),
  type text NOT NULL,
  queue text NOT NULL,
  worker_id text,
  tenant text,
  key_hash bytea,
  key_prefix text,
  key_scope text,
  fingerprint text,
  parent_id uuid,
  duplicate_of uuid,
  trace_context text,
  tags text[],
  payload json NOT NULL,
  result json,
  failure text,
  history text
);

CREATE INDEX jobs_dlq_newest ON chokaq.jobs_dlq (created_at, id);
CREATE INDEX jobs_dlq_key ON chokaq.jobs_dlq (key_hash, generation) WHERE key_hash IS NOT NULL;
CREATE INDEX jobs_dlq_finished ON chokaq.jobs_dlq (queue, finished_at) WHERE NOT in_doubt;

CREATE TABLE chokaq.idempotency_markers (
  key_hash bytea PRIMARY KEY,
  job_id uuid NOT NULL,
  token bigint NOT NULL,
  created_at bigint NOT NULL,
  -- Empty while a person has to decide.
  expires_at bigint,
  generation integer NOT NULL CHECK (generation >= 1),
  state text NOT NULL CHECK (state IN ('completed', 'in_doubt', 'terminal', 'compensated')),
  fingerprint text,
  result json,
  failure text,
  CHECK (state <> 'in_doubt' OR expires_at IS NULL)
);

CREATE INDEX idempotency_markers_expiry ON chokaq.idempotency_markers (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE chokaq.job_types (
  type text PRIMARY KEY,
  queue text NOT NULL,
  keyed boolean NOT NULL,
  key_scope text NOT NULL,
  allow_raw boolean NOT NULL,
  answers text NOT NULL,
  payload_schema text,
  updated_at bigint NOT NULL
);

CREATE TABLE chokaq.queues (
  name text PRIMARY KEY,
  paused boolean NOT NULL DEFAULT false,
  max_concurrency integer CHECK (max_concurrency >= 0),
  archive_retention_ms bigint CHECK (archive_retention_ms >= 0),
  dlq_retention_ms bigint CHECK (dlq_retention_ms >= 0)
);

CREATE TABLE chokaq.workers (
  id text PRIMARY KEY,
  -- A counter and no time: dead is what stands still on the observer's own clock.
  beat bigint NOT NULL,
  started_at bigint NOT NULL,
  beat_at bigint NOT NULL,
  concurrency integer NOT NULL,
  running_count integer NOT NULL,
  buffered_count integer NOT NULL,
  name text NOT NULL,
  identity text NOT NULL,
  queues text NOT NULL,
  types text NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- What transactions count. They only insert here, so no two of them ever wait for each other; the sweep adds it up into
-- stats_totals and deletes it.
CREATE TABLE chokaq.worker_counters (
  value bigint NOT NULL,
  name text NOT NULL,
  queue text NOT NULL,
  type text NOT NULL,
  label text NOT NULL
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0);

CREATE TABLE chokaq.stats_totals (
  name text NOT NULL,
  queue text NOT NULL,
  type text NOT NULL,
  label text NOT NULL,
  value bigint NOT NULL,
  PRIMARY KEY (name, queue, type, label)
) WITH (fillfactor = 50);

CREATE TABLE chokaq.audit_log (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  actor text NOT NULL,
  note text NOT NULL,
  act text NOT NULL,
  subject text NOT NULL,
  detail text NOT NULL
);
