-- pages of the newest go, task
-- Revision 20261121T2114_pages_of_the_newest_go_task, after 20261121T2113_pages_of_the_newest_go_incident

-- svc: no-transaction
DROP INDEX CONCURRENTLY "task_id_brin";
