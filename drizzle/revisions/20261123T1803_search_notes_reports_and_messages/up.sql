-- search notes, reports and messages
-- Revision 20261123T1803_search_notes_reports_and_messages, after 20261123T0554_authority_keys

ALTER TABLE "conversation_message" ADD COLUMN "search" tsvector;

ALTER TABLE "event" ADD COLUMN "search" tsvector;

ALTER TABLE "status_report" ADD COLUMN "search" tsvector;

CREATE INDEX "conversation_message_search_block_idx" ON "conversation_message" USING gin ("search",(array["id" >> 12]));

CREATE INDEX "event_search_block_idx" ON "event" USING gin ("search",(array["id" >> 12])) WHERE kind = 'note';

CREATE INDEX "status_report_search_block_idx" ON "status_report" USING gin ("search",(array["id" >> 12]));
