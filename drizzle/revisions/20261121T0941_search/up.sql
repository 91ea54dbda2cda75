-- search
-- Revision 20261121T0941_search, after 20261121T0940_incidents

ALTER TABLE "application" ADD COLUMN "search" tsvector;

ALTER TABLE "definition" ADD COLUMN "search" tsvector;

ALTER TABLE "document" ADD COLUMN "search" tsvector;

ALTER TABLE "incident" ADD COLUMN "search" tsvector;

ALTER TABLE "incident_type" ADD COLUMN "search" tsvector;

ALTER TABLE "individual" ADD COLUMN "search" tsvector;

ALTER TABLE "service" ADD COLUMN "search" tsvector;

ALTER TABLE "task" ADD COLUMN "search" tsvector;

ALTER TABLE "team" ADD COLUMN "search" tsvector;

ALTER TABLE "term" ADD COLUMN "search" tsvector;

CREATE INDEX "application_search_idx" ON "application" USING gin ("search");

CREATE INDEX "definition_search_idx" ON "definition" USING gin ("search");

CREATE INDEX "document_search_idx" ON "document" USING gin ("search");

CREATE INDEX "incident_search_idx" ON "incident" USING gin ("search");

CREATE INDEX "incident_type_search_idx" ON "incident_type" USING gin ("search");

CREATE INDEX "individual_search_idx" ON "individual" USING gin ("search");

CREATE INDEX "service_search_idx" ON "service" USING gin ("search");

CREATE INDEX "task_search_idx" ON "task" USING gin ("search");

CREATE INDEX "team_search_idx" ON "team" USING gin ("search");

CREATE INDEX "term_search_idx" ON "term" USING gin ("search");
