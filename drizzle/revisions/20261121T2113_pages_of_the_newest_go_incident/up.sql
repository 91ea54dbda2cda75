-- pages of the newest go, incident
-- Revision 20261121T2113_pages_of_the_newest_go_incident, after 20261121T2112_pages_of_the_newest_go_document

-- svc: no-transaction
DROP INDEX CONCURRENTLY "incident_id_brin";
