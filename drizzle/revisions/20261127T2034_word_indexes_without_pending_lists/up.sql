-- word indexes without pending lists
-- Revision 20261127T2034_word_indexes_without_pending_lists, after 20261127T1223_times_within_years

ALTER INDEX "conversation_message_search_block_idx" SET (fastupdate = false);

ALTER INDEX "document_search_block_idx" SET (fastupdate = false);

ALTER INDEX "event_search_block_idx" SET (fastupdate = false);

ALTER INDEX "incident_search_block_idx" SET (fastupdate = false);

ALTER INDEX "status_report_search_block_idx" SET (fastupdate = false);

ALTER INDEX "task_search_block_idx" SET (fastupdate = false);

-- What was collected before stays in the lists otherwise.
SELECT gin_clean_pending_list('conversation_message_search_block_idx'),
  gin_clean_pending_list('document_search_block_idx'),
  gin_clean_pending_list('event_search_block_idx'),
  gin_clean_pending_list('incident_search_block_idx'),
  gin_clean_pending_list('status_report_search_block_idx'),
  gin_clean_pending_list('task_search_block_idx');
