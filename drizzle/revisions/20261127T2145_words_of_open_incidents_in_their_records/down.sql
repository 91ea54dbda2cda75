-- Reverts: words of open incidents in their records

DROP INDEX "conversation_message_search_open_idx";

DROP INDEX "document_search_open_idx";

DROP INDEX "event_search_open_idx";

DROP INDEX "status_report_search_open_idx";

DROP INDEX "task_search_open_idx";
