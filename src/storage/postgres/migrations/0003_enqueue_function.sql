-- For triggers and other languages: stores a job without its contract. The row has no key, so a keyed type must say
-- `allowRaw`; the worker computes the key and claims it. It runs with the rights of its caller, in its transaction. The
-- defaults that a client may change (maxPayloadBytes, maxDelay) are fixed here.

CREATE FUNCTION chokaq.enqueue(
  type text,
  payload json,
  queue text DEFAULT NULL,
  priority integer DEFAULT 0,
  delay interval DEFAULT NULL,
  run_at timestamptz DEFAULT NULL,
  tags text[] DEFAULT NULL,
  tenant text DEFAULT NULL,
  id uuid DEFAULT NULL
) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = '' AS $chokaq_enqueue$
#variable_conflict use_column
DECLARE
  max_payload_bytes CONSTANT integer := 1000000;
  max_delay_ms CONSTANT bigint := 30 * 86400000::bigint;
  quiet_ms CONSTANT integer := 5;
  control CONSTANT text := '[\x01-\x1f\x7f]';
  known record;
  stored record;
  problem text;
  channel text := 'chokaq_wake';
  now_ms bigint := chokaq.now_ms();
  due_ms numeric;
  tag_count integer := coalesce(cardinality(enqueue.tags), 0);
  job_id uuid := enqueue.id;
  is_in boolean;
BEGIN
  SELECT t.queue, t.keyed, t.allow_raw, n.nspname::text AS schema_name INTO known
  FROM chokaq.job_types t
    JOIN pg_catalog.pg_class c ON c.oid = t.tableoid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE t.type = enqueue.type;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('CHOKAQ_UNKNOWN_TYPE: No worker has registered the type %s.',
        coalesce('"' || left(enqueue.type, 128) || '"', 'NULL')),
      DETAIL = format('Known: %s.', coalesce((SELECT string_agg(k.type, ', ' ORDER BY k.type)
        FROM (SELECT t.type FROM chokaq.job_types t ORDER BY t.type LIMIT 50) k), 'none')),
      HINT = 'Start a worker that has a handler for it once, then call again.';
  END IF;
  IF known.keyed AND NOT known.allow_raw THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('CHOKAQ_RAW_REFUSED: The type "%s" is keyed and its contract does not say allowRaw.', enqueue.type),
      HINT = 'Set allowRaw: true in its contract and start a worker with it, or enqueue with the contract.';
  END IF;

  due_ms := CASE
    WHEN enqueue.run_at IS NOT NULL AND isfinite(enqueue.run_at) THEN ceil(extract(epoch FROM enqueue.run_at) * 1000)
    ELSE now_ms + ceil(extract(epoch FROM coalesce(enqueue.delay, '0')) * 1000) END;
  problem := CASE
    WHEN enqueue.payload IS NULL THEN 'payload is NULL; expected JSON (the JSON null is ''null'')'
    WHEN char_length(enqueue.queue) NOT BETWEEN 1 AND 128 OR enqueue.queue ~ control
      THEN 'queue; expected a text of 1 to 128 characters without control characters'
    WHEN char_length(enqueue.tenant) NOT BETWEEN 1 AND 128 OR enqueue.tenant ~ control
      THEN 'tenant; expected a text of 1 to 128 characters without control characters'
    WHEN enqueue.priority IS NULL OR enqueue.priority NOT BETWEEN -1000 AND 1000
      THEN format('priority is %s; expected a whole number from -1000 to 1000', coalesce(enqueue.priority::text, 'NULL'))
    WHEN enqueue.delay IS NOT NULL AND enqueue.run_at IS NOT NULL THEN 'run_at; expected either delay or run_at, not both'
    WHEN NOT isfinite(enqueue.run_at) THEN 'run_at is infinite; expected a time'
    WHEN enqueue.delay < interval '0' THEN format('delay is %s; expected 0 or more', enqueue.delay)
    WHEN due_ms - now_ms > max_delay_ms THEN 'delay or run_at; expected at most 30 days from now'
    WHEN tag_count > 10 OR EXISTS (SELECT FROM unnest(enqueue.tags) AS t(tag)
        WHERE t.tag IS NULL OR char_length(t.tag) NOT BETWEEN 1 AND 100)
      THEN 'tags; expected at most 10 texts of 1 to 100 characters'
    END;
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('CHOKAQ_OPTION_INVALID: %s.', problem), HINT = 'Nothing was stored. Correct the argument.';
  END IF;
  IF octet_length(enqueue.payload::text) > max_payload_bytes THEN
    RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded',
      MESSAGE = format('CHOKAQ_TOO_LARGE: The payload of "%s" has %s bytes; the limit is %s.', enqueue.type,
        octet_length(enqueue.payload::text), max_payload_bytes),
      HINT = 'Store the data elsewhere and pass its id.';
  END IF;

  -- Version 7: the time in front, so that rows which come together stand together in the index.
  job_id := coalesce(job_id, encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    PLACING substring(int8send(now_ms) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid);
  FOR round IN 1..10 LOOP
    INSERT INTO chokaq.jobs_hot (id, state, type, queue, priority, run_at, generation, created_at, tenant, tags, payload)
    VALUES (job_id, CASE WHEN due_ms <= now_ms THEN 'pending' ELSE 'scheduled' END, enqueue.type,
      coalesce(enqueue.queue, known.queue), enqueue.priority, greatest(due_ms, now_ms), 1, now_ms, enqueue.tenant,
      CASE WHEN tag_count > 0 THEN ARRAY(SELECT t.tag FROM unnest(enqueue.tags) AS t(tag)) END, enqueue.payload)
    ON CONFLICT DO NOTHING;
    is_in := FOUND;
    EXIT WHEN is_in AND enqueue.id IS NULL;
    -- A row that may be stored already is looked for in a later statement, because it may be on its way to another table.
    SELECT s.type, s.payload INTO stored FROM (
      SELECT a.type, a.payload::text AS payload FROM chokaq.jobs_archive a WHERE a.id = job_id
      UNION ALL SELECT d.type, d.payload::text FROM chokaq.jobs_dlq d WHERE d.id = job_id
      UNION ALL SELECT h.type, h.payload::text FROM chokaq.jobs_hot h WHERE h.id = job_id AND NOT is_in) s LIMIT 1;
    IF FOUND THEN
      IF is_in THEN DELETE FROM chokaq.jobs_hot h WHERE h.id = job_id; END IF;
      -- What is left of a job whose history was dropped has no payload.
      IF stored.type <> enqueue.type OR stored.payload <> enqueue.payload::text THEN
        RAISE EXCEPTION USING ERRCODE = 'unique_violation',
          MESSAGE = format('CHOKAQ_ID_REUSED: The id %s belongs to another job.', job_id),
          HINT = 'Use a new id, or leave it out.';
      END IF;
      RETURN job_id;
    END IF;
    EXIT WHEN is_in;
  END LOOP;
  IF NOT is_in THEN
    RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
      MESSAGE = format('CHOKAQ_STORAGE_BUSY: The job %s is on its way from table to table.', job_id),
      HINT = 'Run the transaction again.';
  END IF;
  INSERT INTO chokaq.worker_counters (value, name, queue, type, label)
  VALUES (1, 'jobs.enqueued', coalesce(enqueue.queue, known.queue), enqueue.type, '');

  -- Sent with the commit, once for each transaction, and not by each of many transactions of one session: the server
  -- serialises the commits of all that notify. What is not announced is found by polling.
  IF due_ms <= now_ms
    AND abs(now_ms - coalesce(nullif(current_setting('chokaq_wake.sent_at', true), '')::bigint, 0)) >= quiet_ms THEN
    IF known.schema_name <> 'chokaq' THEN
      channel := channel || '_' || left(encode(sha256(convert_to(known.schema_name, 'UTF8')), 'hex'), 16);
    END IF;
    PERFORM set_config('chokaq_wake.sent_at', now_ms::text, false), pg_notify(channel, '');
  END IF;
  RETURN job_id;
END
$chokaq_enqueue$;
