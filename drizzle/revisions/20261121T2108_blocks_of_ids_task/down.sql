-- Takes back: blocks of ids, task

-- svc: no-transaction
DROP INDEX CONCURRENTLY "task_search_block_idx";
