-- lookups
-- Revision 20261121T1501_lookups, after 20261121T1234_pg_boss_12_35

CREATE INDEX "document_weblink_idx" ON "document" USING hash ("weblink");

CREATE INDEX "participant_individual_active_idx" ON "participant" USING btree ("individual_id","incident_id") WHERE left_at is null;
