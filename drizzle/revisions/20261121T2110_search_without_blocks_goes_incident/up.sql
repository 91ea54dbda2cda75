-- search without blocks goes, incident
-- Revision 20261121T2110_search_without_blocks_goes_incident, after 20261121T2109_search_without_blocks_goes_document

-- svc: no-transaction
DROP INDEX CONCURRENTLY "incident_search_idx";
