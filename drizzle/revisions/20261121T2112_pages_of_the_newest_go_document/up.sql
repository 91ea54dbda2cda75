-- pages of the newest go, document
-- Revision 20261121T2112_pages_of_the_newest_go_document, after 20261121T2111_search_without_blocks_goes_task

-- svc: no-transaction
DROP INDEX CONCURRENTLY "document_id_brin";
