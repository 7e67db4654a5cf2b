-- What handlers did to the outside world, and what they asked to be remembered. See core/ledger.ts for the states.

CREATE TABLE chokaq.effects (
  id uuid PRIMARY KEY,
  token bigint NOT NULL CHECK (token > 0),
  opened_at bigint NOT NULL,
  closed_at bigint,
  -- How long it is kept after its last intent, once no job and no marker has the key.
  keep_ms bigint NOT NULL CHECK (keep_ms >= 0),
  generation integer NOT NULL CHECK (generation >= 1),
  attempt integer NOT NULL CHECK (attempt >= 1),
  -- The worker that wrote it is proven dead: no late call of it can still arrive.
  owner_gone boolean NOT NULL DEFAULT false,
  -- The provider stored an error under the key and replays it.
  replayed boolean NOT NULL DEFAULT false,
  job_id uuid NOT NULL,
  kind text NOT NULL CHECK (kind IN ('effect', 'compensation', 'memo', 'checkpoint')),
  state text NOT NULL
    CHECK (state IN ('open', 'ambiguous', 'not-executed', 'done', 'terminal', 'superseded', 'abandoned')),
  -- The hash of the business key in hexadecimal digits; 'job:' and the id for a job without one.
  key_ref text NOT NULL CHECK (key_ref <> ''),
  name text NOT NULL CHECK (name <> ''),
  item text NOT NULL,
  worker_id text NOT NULL,
  provider text NOT NULL,
  provider_key text,
  fingerprint text NOT NULL,
  input json NOT NULL,
  result json,
  failure text,
  CHECK ((state = 'open') = (closed_at IS NULL)),
  CHECK (kind IN ('effect', 'compensation') OR state = 'done')
) WITH (fillfactor = 80);

CREATE INDEX effects_ref ON chokaq.effects (key_ref, generation, kind, name, item);
-- The guard of every ending: is anything of this key in doubt?
CREATE INDEX effects_doubt ON chokaq.effects (key_ref, generation) WHERE state IN ('open', 'ambiguous');
CREATE INDEX effects_owner ON chokaq.effects (worker_id) WHERE state = 'open';
CREATE INDEX effects_age ON chokaq.effects (opened_at) WHERE state NOT IN ('open', 'ambiguous');
-- A memo or checkpoint is remembered once.
CREATE UNIQUE INDEX effects_once ON chokaq.effects (key_ref, generation, kind, name, item)
  WHERE kind IN ('memo', 'checkpoint');
