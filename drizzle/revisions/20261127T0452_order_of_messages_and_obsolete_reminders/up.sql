-- order of messages and obsolete reminders
-- Revision 20261127T0452_order_of_messages_and_obsolete_reminders, after 20261125T2150_initial

ALTER TABLE "delivery" DROP CONSTRAINT "delivery_state_known";

CREATE SEQUENCE "public"."delivery_sequence_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;

ALTER TABLE "delivery" ADD COLUMN "topic" text;

-- In two steps: a column that is added with such a default rewrites the table.
ALTER TABLE "delivery" ADD COLUMN "sequence" bigint;

ALTER TABLE "delivery" ALTER COLUMN "sequence" SET DEFAULT nextval('delivery_sequence_seq');

ALTER TABLE "delivery" ADD COLUMN "occurred_at" timestamp with time zone;

ALTER TABLE "delivery" ADD CONSTRAINT "delivery_state_known" CHECK (state in ('Queued', 'Done', 'Dead', 'Split', 'Obsolete'));

CREATE INDEX "delivery_order_idx" ON "delivery" USING btree ("plugin_slug","incident_id","recipient","sequence") WHERE state = 'Queued' and individual_id is null and topic is null and attempts <= 3;

CREATE INDEX "delivery_topic_idx" ON "delivery" USING btree ("topic","sequence") WHERE topic is not null;
