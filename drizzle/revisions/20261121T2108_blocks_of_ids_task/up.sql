-- blocks of ids, task
-- Revision 20261121T2108_blocks_of_ids_task, after 20261121T2107_blocks_of_ids_incident

-- svc: no-transaction
-- The one without blocks goes only when all of these are there: who searches has one of the two.
CREATE INDEX CONCURRENTLY "task_search_block_idx" ON "task" USING gin ("search",(array["id" >> 12]));
