-- What was counted lately, at the start of its ten seconds. The transaction that counts adds to it; the sweep takes it out
-- and adds it to the series.
CREATE TABLE chokaq_metric_recent (
  at INTEGER NOT NULL,
  queue TEXT NOT NULL,
  type TEXT NOT NULL,
  name TEXT NOT NULL,
  label TEXT NOT NULL,
  value INTEGER NOT NULL,
  PRIMARY KEY (at, queue, type, name, label)
) STRICT, WITHOUT ROWID;

-- From 2 on: 0 is everything, 1 is what came after the last pair that got a number of its own.
CREATE TABLE chokaq_metric_series (
  id INTEGER PRIMARY KEY CHECK (id >= 2),
  queue TEXT NOT NULL,
  type TEXT NOT NULL,
  UNIQUE (queue, type)
) STRICT;

CREATE TABLE chokaq_metric_buckets (
  series INTEGER NOT NULL,
  -- Its width, milliseconds.
  step INTEGER NOT NULL,
  at INTEGER NOT NULL,
  name TEXT NOT NULL,
  label TEXT NOT NULL,
  value INTEGER NOT NULL,
  PRIMARY KEY (series, step, at, name, label)
) STRICT, WITHOUT ROWID;
