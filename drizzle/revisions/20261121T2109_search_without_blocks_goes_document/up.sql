-- search without blocks goes, document
-- Revision 20261121T2109_search_without_blocks_goes_document, after 20261121T2108_blocks_of_ids_task

-- svc: no-transaction
DROP INDEX CONCURRENTLY "document_search_idx";
