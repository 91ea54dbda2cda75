-- Takes back: pages of the newest

DROP INDEX "document_id_brin";

DROP INDEX "incident_id_brin";

DROP INDEX "task_id_brin";
