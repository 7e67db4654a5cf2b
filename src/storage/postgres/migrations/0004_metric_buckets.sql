-- When something was counted, in the ten seconds of which it belongs. What counts and does not say so gets the time of
-- the insert.
ALTER TABLE chokaq.worker_counters ADD COLUMN at bigint NOT NULL DEFAULT chokaq.now_ms();

-- From 2 on: 0 is everything, 1 is what came after the last pair that got a number of its own.
CREATE TABLE chokaq.metric_series (
  id integer PRIMARY KEY CHECK (id >= 2),
  queue text NOT NULL,
  type text NOT NULL,
  UNIQUE (queue, type)
);

CREATE TABLE chokaq.metric_buckets (
  at bigint NOT NULL,
  value bigint NOT NULL,
  -- Its width, milliseconds.
  step integer NOT NULL,
  series integer NOT NULL,
  name text NOT NULL,
  label text NOT NULL,
  PRIMARY KEY (series, step, at, name, label)
) WITH (fillfactor = 90, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.02);
