-- search without blocks goes, task
-- Revision 20261121T2111_search_without_blocks_goes_task, after 20261121T2110_search_without_blocks_goes_incident

-- svc: no-transaction
DROP INDEX CONCURRENTLY "task_search_idx";
