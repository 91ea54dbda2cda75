-- Takes back: pages of the newest go, task

-- svc: no-transaction
CREATE INDEX CONCURRENTLY "task_id_brin" ON "task" USING brin ("id") WITH (autosummarize=true);
