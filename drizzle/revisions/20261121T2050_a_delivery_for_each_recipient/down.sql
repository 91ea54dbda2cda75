-- Takes back: a delivery for each recipient

SELECT pgboss.delete_queue('delivery-recipient');

ALTER TABLE "delivery" DROP CONSTRAINT "delivery_state_known";

ALTER TABLE "delivery" DROP CONSTRAINT "delivery_to_one";

ALTER TABLE "delivery" DROP CONSTRAINT "delivery_split_to_everyone";

-- The release before would send to everyone what one recipient has not got yet.
DELETE FROM "delivery" WHERE recipient is not null AND state <> 'Done';

UPDATE "delivery" SET state = 'Done' WHERE state = 'Split';

-- svc: data-loss column delivery.recipient
ALTER TABLE "delivery" DROP COLUMN "recipient";

ALTER TABLE "delivery" ADD CONSTRAINT "delivery_state_known" CHECK (state in ('Queued', 'Done', 'Dead'));
