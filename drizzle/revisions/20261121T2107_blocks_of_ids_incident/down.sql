-- Takes back: blocks of ids, incident

-- svc: no-transaction
DROP INDEX CONCURRENTLY "incident_search_block_idx";
