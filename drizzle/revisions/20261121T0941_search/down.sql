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

-- svc: no-data-loss triggers fill it from the other columns
ALTER TABLE "application" DROP COLUMN "search";

-- svc: no-data-loss triggers fill it from the other columns
ALTER TABLE "definition" DROP COLUMN "search";

-- svc: no-data-loss triggers fill it from the other columns
ALTER TABLE "document" DROP COLUMN "search";

-- svc: no-data-loss triggers fill it from the other columns
ALTER TABLE "incident" DROP COLUMN "search";

-- svc: no-data-loss triggers fill it from the other columns
ALTER TABLE "incident_type" DROP COLUMN "search";

-- svc: no-data-loss triggers fill it from the other columns
ALTER TABLE "individual" DROP COLUMN "search";

-- svc: no-data-loss triggers fill it from the other columns
ALTER TABLE "service" DROP COLUMN "search";

-- svc: no-data-loss triggers fill it from the other columns
ALTER TABLE "task" DROP COLUMN "search";

-- svc: no-data-loss triggers fill it from the other columns
ALTER TABLE "team" DROP COLUMN "search";

-- svc: no-data-loss triggers fill it from the other columns
ALTER TABLE "term" DROP COLUMN "search";
