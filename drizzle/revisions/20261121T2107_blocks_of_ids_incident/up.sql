-- blocks of ids, incident
-- Revision 20261121T2107_blocks_of_ids_incident, after 20261121T2106_blocks_of_ids_document

-- svc: no-transaction
-- The one without blocks goes only when all of these are there: who searches has one of the two.
CREATE INDEX CONCURRENTLY "incident_search_block_idx" ON "incident" USING gin ("search",(array["id" >> 12]));
