-- Takes back: search without blocks goes, incident

-- svc: no-transaction
CREATE INDEX CONCURRENTLY "incident_search_idx" ON "incident" USING gin ("search");
