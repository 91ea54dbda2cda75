-- Takes back: pages of the newest go, incident

-- svc: no-transaction
CREATE INDEX CONCURRENTLY "incident_id_brin" ON "incident" USING brin ("id") WITH (autosummarize=true);
