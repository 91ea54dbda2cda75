-- Takes back: pages of the newest go, document

-- svc: no-transaction
CREATE INDEX CONCURRENTLY "document_id_brin" ON "document" USING brin ("id") WITH (autosummarize=true);
