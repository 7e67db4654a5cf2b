-- What people look for without reading history: what waits for them, the duplicates of a job, and who acted on it.

CREATE INDEX chokaq_jobs_dlq_review ON chokaq_jobs_dlq (created_at, id)
  WHERE in_doubt = 1 OR reason = 'CompleteConflict';
CREATE INDEX chokaq_jobs_dlq_duplicate ON chokaq_jobs_dlq (duplicate_of, created_at, id) WHERE duplicate_of IS NOT NULL;
CREATE INDEX chokaq_jobs_archive_duplicate ON chokaq_jobs_archive (duplicate_of, created_at, id)
  WHERE duplicate_of IS NOT NULL;
CREATE INDEX chokaq_audit_log_subject ON chokaq_audit_log (subject, id);
