-- Reverts: search notes, reports and messages

DROP INDEX "conversation_message_search_block_idx";

DROP INDEX "event_search_block_idx";

DROP INDEX "status_report_search_block_idx";

-- svc: data-loss column conversation_message.search
ALTER TABLE "conversation_message" DROP COLUMN "search";

-- svc: data-loss column event.search
ALTER TABLE "event" DROP COLUMN "search";

-- svc: data-loss column status_report.search
ALTER TABLE "status_report" DROP COLUMN "search";
