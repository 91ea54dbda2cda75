-- a delivery for each recipient
-- Revision 20261121T2050_a_delivery_for_each_recipient, after 20261121T1838_pages_of_the_newest

ALTER TABLE "delivery" DROP CONSTRAINT "delivery_state_known";

ALTER TABLE "delivery" ADD COLUMN "recipient" text;

ALTER TABLE "delivery" ADD CONSTRAINT "delivery_state_known" CHECK (state in ('Queued', 'Done', 'Dead', 'Split'));

ALTER TABLE "delivery" ADD CONSTRAINT "delivery_to_one" CHECK (recipient is null or individual_id is null);

ALTER TABLE "delivery" ADD CONSTRAINT "delivery_split_to_everyone" CHECK (state <> 'Split' or (recipient is null and individual_id is null));

-- A queue of its own: workers of the release before would send what is for one recipient to everyone.
SELECT pgboss.create_queue('delivery-recipient', '{"policy":"standard","retryLimit":5,"retryDelay":30,"retryBackoff":true,"retryDelayMax":3600,"expireInSeconds":900,"retentionSeconds":315360000,"deleteAfterSeconds":86400,"heartbeatSeconds":60,"warningQueueSize":0,"deadLetter":"delivery-dead","partition":false,"notify":false}');
