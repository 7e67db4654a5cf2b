-- The three pillars, what a key leaves behind, and what operators see. Times are integer milliseconds since 1970.
-- The large texts stand last in each row, so that reading a state never walks the pages of a payload.

-- Lease tokens come from here and from nowhere else: one rising number per database.
CREATE TABLE chokaq_sequence (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  token INTEGER NOT NULL CHECK (token >= 0)
) STRICT;
INSERT INTO chokaq_sequence (id, token) VALUES (1, 0);

CREATE TABLE chokaq_jobs_hot (
  id TEXT PRIMARY KEY NOT NULL CHECK (id <> ''),
  state TEXT NOT NULL CHECK (state IN ('scheduled', 'pending', 'fetched', 'processing')),
  type TEXT NOT NULL CHECK (type <> ''),
  queue TEXT NOT NULL CHECK (queue <> ''),
  priority INTEGER NOT NULL CHECK (priority BETWEEN -1000 AND 1000),
  run_at INTEGER NOT NULL,
  token INTEGER NOT NULL CHECK (token >= 0),
  worker_id TEXT,
  generation INTEGER NOT NULL CHECK (generation >= 1),
  attempt INTEGER NOT NULL CHECK (attempt >= 0),
  failure_count INTEGER NOT NULL CHECK (failure_count >= 0),
  crash_count INTEGER NOT NULL CHECK (crash_count >= 0),
  fetch_crash_count INTEGER NOT NULL CHECK (fetch_crash_count >= 0),
  -- It was running when a worker died: no fast start any more, and one at a time in each worker.
  suspect INTEGER NOT NULL CHECK (suspect IN (0, 1)),
  -- The fetch itself started it, so a crash does not prove that its handler ran.
  fast_started INTEGER NOT NULL CHECK (fast_started IN (0, 1)),
  -- Stamped at start, so that a rescue decides without the code.
  when_interrupted TEXT CHECK (when_interrupted IN ('resume', 'review')),
  crash_budget INTEGER,
  fetch_crash_budget INTEGER,
  revision INTEGER NOT NULL CHECK (revision >= 0),
  created_at INTEGER NOT NULL,
  fetched_at INTEGER,
  started_at INTEGER,
  first_started_at INTEGER,
  cancel_requested_at INTEGER,
  tenant TEXT,
  key_hash TEXT,
  key_prefix TEXT,
  key_scope TEXT,
  -- The worker computed the key of a raw enqueue.
  key_computed INTEGER NOT NULL CHECK (key_computed IN (0, 1)),
  fingerprint TEXT,
  parent_id TEXT,
  trace_context TEXT,
  tags TEXT,
  payload TEXT NOT NULL,
  failure TEXT,
  history TEXT,
  CHECK ((state IN ('fetched', 'processing')) = (worker_id IS NOT NULL)),
  CHECK (worker_id IS NULL OR (token > 0 AND fetched_at IS NOT NULL)),
  CHECK (state <> 'processing' OR (started_at IS NOT NULL AND first_started_at IS NOT NULL AND attempt >= 1)),
  CHECK (state <> 'processing' OR when_interrupted IS NOT NULL),
  CHECK (fast_started = 0 OR state = 'processing'),
  CHECK ((key_hash IS NULL) = (key_prefix IS NULL) AND (key_hash IS NULL) = (key_scope IS NULL)),
  CHECK (key_computed = 0 OR key_hash IS NOT NULL)
) STRICT;

-- The claim: one hot row per key.
CREATE UNIQUE INDEX chokaq_jobs_hot_key ON chokaq_jobs_hot (key_hash) WHERE key_hash IS NOT NULL;
-- Fetch probes it once per type, see statements/fetch.ts.
CREATE INDEX chokaq_jobs_hot_pending ON chokaq_jobs_hot (queue, type, priority DESC, run_at, id) WHERE state = 'pending';
CREATE INDEX chokaq_jobs_hot_scheduled ON chokaq_jobs_hot (run_at, queue) WHERE state = 'scheduled';
CREATE INDEX chokaq_jobs_hot_owned ON chokaq_jobs_hot (worker_id, queue) WHERE worker_id IS NOT NULL;
CREATE INDEX chokaq_jobs_hot_cancel ON chokaq_jobs_hot (worker_id) WHERE cancel_requested_at IS NOT NULL;
CREATE INDEX chokaq_jobs_hot_newest ON chokaq_jobs_hot (created_at, id);

CREATE TABLE chokaq_jobs_archive (
  id TEXT PRIMARY KEY NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('completed', 'skipped', 'cancelled')),
  type TEXT NOT NULL,
  queue TEXT NOT NULL,
  priority INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  token INTEGER NOT NULL,
  worker_id TEXT,
  generation INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  failure_count INTEGER NOT NULL,
  crash_count INTEGER NOT NULL,
  fetch_crash_count INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  fetched_at INTEGER,
  started_at INTEGER,
  first_started_at INTEGER,
  cancel_requested_at INTEGER,
  finished_at INTEGER NOT NULL,
  -- Set on a stub: what `keep` left of a job, so that a repeated reply is recognised.
  expires_at INTEGER,
  tenant TEXT,
  key_hash TEXT,
  key_prefix TEXT,
  key_scope TEXT,
  key_computed INTEGER NOT NULL,
  fingerprint TEXT,
  parent_id TEXT,
  duplicate_of TEXT,
  trace_context TEXT,
  tags TEXT,
  payload TEXT,
  result TEXT,
  failure TEXT,
  history TEXT,
  CHECK ((expires_at IS NULL) = (payload IS NOT NULL)),
  CHECK (outcome <> 'skipped' OR duplicate_of IS NOT NULL)
) STRICT;

CREATE INDEX chokaq_jobs_archive_newest ON chokaq_jobs_archive (created_at, id);
CREATE INDEX chokaq_jobs_archive_finished ON chokaq_jobs_archive (queue, finished_at) WHERE expires_at IS NULL;
CREATE INDEX chokaq_jobs_archive_stub ON chokaq_jobs_archive (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE chokaq_jobs_dlq (
  id TEXT PRIMARY KEY NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('MaxRetriesExceeded', 'FatalError', 'Timeout', 'Interrupted',
    'RetryLifetimeExpired', 'Rejected', 'InDoubt', 'CompleteConflict', 'KeyReused', 'EmptyKey', 'ReviewRequested')),
  type TEXT NOT NULL,
  queue TEXT NOT NULL,
  priority INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  token INTEGER NOT NULL,
  worker_id TEXT,
  generation INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  failure_count INTEGER NOT NULL,
  crash_count INTEGER NOT NULL,
  fetch_crash_count INTEGER NOT NULL,
  revision INTEGER NOT NULL CHECK (revision >= 1),
  -- Only a decision of a person ends the doubt: such a row is never pruned or purged.
  in_doubt INTEGER NOT NULL CHECK (in_doubt IN (0, 1)),
  created_at INTEGER NOT NULL,
  fetched_at INTEGER,
  started_at INTEGER,
  first_started_at INTEGER,
  cancel_requested_at INTEGER,
  finished_at INTEGER NOT NULL,
  tenant TEXT,
  key_hash TEXT,
  key_prefix TEXT,
  key_scope TEXT,
  key_computed INTEGER NOT NULL,
  fingerprint TEXT,
  parent_id TEXT,
  duplicate_of TEXT,
  trace_context TEXT,
  tags TEXT,
  payload TEXT NOT NULL,
  result TEXT,
  failure TEXT,
  history TEXT
) STRICT;

CREATE INDEX chokaq_jobs_dlq_newest ON chokaq_jobs_dlq (created_at, id);
CREATE INDEX chokaq_jobs_dlq_key ON chokaq_jobs_dlq (key_hash) WHERE key_hash IS NOT NULL;
CREATE INDEX chokaq_jobs_dlq_finished ON chokaq_jobs_dlq (queue, finished_at) WHERE in_doubt = 0;

CREATE TABLE chokaq_idempotency_markers (
  key_hash TEXT PRIMARY KEY NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('completed', 'in_doubt', 'terminal', 'compensated')),
  job_id TEXT NOT NULL,
  generation INTEGER NOT NULL CHECK (generation >= 1),
  token INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  -- Empty while a person has to decide.
  expires_at INTEGER,
  fingerprint TEXT,
  result TEXT,
  failure TEXT,
  CHECK (state <> 'in_doubt' OR expires_at IS NULL)
) STRICT;

CREATE INDEX chokaq_idempotency_markers_expiry ON chokaq_idempotency_markers (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE chokaq_job_types (
  type TEXT PRIMARY KEY NOT NULL,
  queue TEXT NOT NULL,
  keyed INTEGER NOT NULL CHECK (keyed IN (0, 1)),
  key_scope TEXT NOT NULL,
  allow_raw INTEGER NOT NULL CHECK (allow_raw IN (0, 1)),
  answers TEXT NOT NULL,
  payload_schema TEXT,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE chokaq_queues (
  name TEXT PRIMARY KEY NOT NULL,
  paused INTEGER NOT NULL CHECK (paused IN (0, 1)),
  max_concurrency INTEGER CHECK (max_concurrency >= 0),
  archive_retention_ms INTEGER CHECK (archive_retention_ms >= 0),
  dlq_retention_ms INTEGER CHECK (dlq_retention_ms >= 0)
) STRICT;

CREATE TABLE chokaq_workers (
  id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  identity TEXT NOT NULL,
  queues TEXT NOT NULL,
  types TEXT NOT NULL,
  concurrency INTEGER NOT NULL,
  running_count INTEGER NOT NULL,
  buffered_count INTEGER NOT NULL,
  -- A counter and no time: dead is what stands still on the observer's own clock.
  beat INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  beat_at INTEGER NOT NULL
) STRICT;

CREATE TABLE chokaq_stats_totals (
  name TEXT NOT NULL,
  queue TEXT NOT NULL,
  type TEXT NOT NULL,
  label TEXT NOT NULL,
  value INTEGER NOT NULL,
  PRIMARY KEY (name, queue, type, label)
) STRICT, WITHOUT ROWID;

CREATE TABLE chokaq_audit_log (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  note TEXT NOT NULL,
  act TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;
