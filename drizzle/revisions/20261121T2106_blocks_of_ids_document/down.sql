-- Takes back: blocks of ids, document

-- svc: no-transaction
DROP INDEX CONCURRENTLY "document_search_block_idx";
