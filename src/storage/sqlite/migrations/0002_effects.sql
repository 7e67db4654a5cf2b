-- What handlers did to the outside world, and what they asked to be remembered. See core/ledger.ts for the states.

CREATE TABLE chokaq_effects (
  id TEXT PRIMARY KEY NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('effect', 'compensation', 'memo', 'checkpoint')),
  -- The hash of the business key; 'job:' and the id for a job without one.
  key_ref TEXT NOT NULL CHECK (key_ref <> ''),
  generation INTEGER NOT NULL CHECK (generation >= 1),
  name TEXT NOT NULL CHECK (name <> ''),
  item TEXT NOT NULL,
  state TEXT NOT NULL
    CHECK (state IN ('open', 'ambiguous', 'not-executed', 'done', 'terminal', 'superseded', 'abandoned')),
  job_id TEXT NOT NULL,
  worker_id TEXT NOT NULL,
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  token INTEGER NOT NULL CHECK (token > 0),
  -- The worker that wrote it is proven dead: no late call of it can still arrive.
  owner_gone INTEGER NOT NULL CHECK (owner_gone IN (0, 1)),
  -- The provider stored an error under the key and replays it.
  replayed INTEGER NOT NULL CHECK (replayed IN (0, 1)),
  provider TEXT NOT NULL,
  provider_key TEXT,
  fingerprint TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  closed_at INTEGER,
  -- How long it is kept after its last intent, once no job and no marker has the key.
  keep_ms INTEGER NOT NULL CHECK (keep_ms >= 0),
  input TEXT NOT NULL,
  result TEXT,
  failure TEXT,
  CHECK ((state = 'open') = (closed_at IS NULL)),
  CHECK (kind IN ('effect', 'compensation') OR state = 'done')
) STRICT;

CREATE INDEX chokaq_effects_ref ON chokaq_effects (key_ref, generation, kind, name, item);
-- The guard of every ending: is anything of this key in doubt?
CREATE INDEX chokaq_effects_doubt ON chokaq_effects (key_ref, generation) WHERE state IN ('open', 'ambiguous');
CREATE INDEX chokaq_effects_owner ON chokaq_effects (worker_id) WHERE state = 'open';
CREATE INDEX chokaq_effects_age ON chokaq_effects (opened_at) WHERE state NOT IN ('open', 'ambiguous');
-- A memo or checkpoint is remembered once.
CREATE UNIQUE INDEX chokaq_effects_once ON chokaq_effects (key_ref, generation, kind, name, item)
  WHERE kind IN ('memo', 'checkpoint');
