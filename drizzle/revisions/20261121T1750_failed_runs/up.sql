-- failed runs
-- Revision 20261121T1750_failed_runs, after 20261121T1501_lookups

CREATE INDEX "run_failed_idx" ON "run" USING btree ("task","finished_at") WHERE state in ('Failed', 'Missed');
