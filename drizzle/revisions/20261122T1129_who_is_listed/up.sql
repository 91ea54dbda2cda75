-- who is listed
-- Revision 20261122T1129_who_is_listed, after 20261121T2114_pages_of_the_newest_go_task

ALTER TABLE "conversation_message" ADD COLUMN "origin" text;

ALTER TABLE "individual" ADD COLUMN "listed" boolean DEFAULT true NOT NULL;
