-- Reverts: words of open incidents

DROP INDEX "incident_search_open_idx";
