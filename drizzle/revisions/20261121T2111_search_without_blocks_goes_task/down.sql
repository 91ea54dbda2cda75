-- Takes back: search without blocks goes, task

-- svc: no-transaction
CREATE INDEX CONCURRENTLY "task_search_idx" ON "task" USING gin ("search");
