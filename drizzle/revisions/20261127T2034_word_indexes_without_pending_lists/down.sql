-- Reverts: word indexes without pending lists

ALTER INDEX "conversation_message_search_block_idx" RESET (fastupdate);

ALTER INDEX "document_search_block_idx" RESET (fastupdate);

ALTER INDEX "event_search_block_idx" RESET (fastupdate);

ALTER INDEX "incident_search_block_idx" RESET (fastupdate);

ALTER INDEX "status_report_search_block_idx" RESET (fastupdate);

ALTER INDEX "task_search_block_idx" RESET (fastupdate);
