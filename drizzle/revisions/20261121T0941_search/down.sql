-- Takes back: search

DROP INDEX "application_search_idx";

DROP INDEX "definition_search_idx";

DROP INDEX "document_search_idx";

DROP INDEX "incident_search_idx";

DROP INDEX "incident_type_search_idx";

DROP INDEX "individual_search_idx";

DROP INDEX "service_search_idx";

DROP INDEX "task_search_idx";

DROP INDEX "team_search_idx";

DROP INDEX "term_search_idx";

-- No loss: triggers made these values from the other columns, and make them again.

ALTER TABLE "application" DROP COLUMN "search";

ALTER TABLE "definition" DROP COLUMN "search";

ALTER TABLE "document" DROP COLUMN "search";

ALTER TABLE "incident" DROP COLUMN "search";

ALTER TABLE "incident_type" DROP COLUMN "search";

ALTER TABLE "individual" DROP COLUMN "search";

ALTER TABLE "service" DROP COLUMN "search";

ALTER TABLE "task" DROP COLUMN "search";

ALTER TABLE "team" DROP COLUMN "search";

ALTER TABLE "term" DROP COLUMN "search";
