-- What people look for without reading history: what waits for them, the duplicates of a job, and who acted on it.

CREATE INDEX jobs_dlq_review ON chokaq.jobs_dlq (created_at, id) WHERE in_doubt OR reason = 'CompleteConflict';
CREATE INDEX jobs_dlq_duplicate ON chokaq.jobs_dlq (duplicate_of, created_at, id) WHERE duplicate_of IS NOT NULL;
CREATE INDEX jobs_archive_duplicate ON chokaq.jobs_archive (duplicate_of, created_at, id) WHERE duplicate_of IS NOT NULL;
-- A subject may be a filter of any length, which no index entry is; its beginning tells enough.
CREATE INDEX audit_log_subject ON chokaq.audit_log (left(subject, 100), id);
