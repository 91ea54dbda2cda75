-- Reverts: order of messages and obsolete reminders

DROP INDEX "delivery_order_idx";

DROP INDEX "delivery_topic_idx";

ALTER TABLE "delivery" DROP CONSTRAINT "delivery_state_known";

-- svc: no-data-loss the previous release does not use it
ALTER TABLE "delivery" DROP COLUMN "topic";

-- svc: no-data-loss the previous release does not use it
ALTER TABLE "delivery" DROP COLUMN "sequence";

-- svc: no-data-loss the previous release does not use it
ALTER TABLE "delivery" DROP COLUMN "occurred_at";

UPDATE "delivery" SET state = 'Done' WHERE state = 'Obsolete';

ALTER TABLE "delivery" ADD CONSTRAINT "delivery_state_known" CHECK (state in ('Queued', 'Done', 'Dead', 'Split'));

-- svc: no-data-loss the previous release does not use it
DROP SEQUENCE "delivery_sequence_seq";
