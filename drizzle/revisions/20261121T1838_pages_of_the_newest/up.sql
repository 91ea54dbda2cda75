-- pages of the newest
-- Revision 20261121T1838_pages_of_the_newest, after 20261121T1750_failed_runs

CREATE INDEX "document_id_brin" ON "document" USING brin ("id") WITH (autosummarize=true);

CREATE INDEX "incident_id_brin" ON "incident" USING brin ("id") WITH (autosummarize=true);

CREATE INDEX "task_id_brin" ON "task" USING brin ("id") WITH (autosummarize=true);
