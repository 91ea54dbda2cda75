-- Takes back: search without blocks goes, document

-- svc: no-transaction
CREATE INDEX CONCURRENTLY "document_search_idx" ON "document" USING gin ("search");
