-- blocks of ids, document
-- Revision 20261121T2106_blocks_of_ids_document, after 20261121T2050_a_delivery_for_each_recipient

-- svc: no-transaction
-- The one without blocks goes only when all of these are there: who searches has one of the two.
CREATE INDEX CONCURRENTLY "document_search_block_idx" ON "document" USING gin ("search",(array["id" >> 12]));
