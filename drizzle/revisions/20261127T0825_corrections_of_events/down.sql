-- Reverts: corrections of events

-- svc: data-loss table event_revision
DROP TABLE "event_revision";

DROP INDEX "event_text_idx";

-- svc: data-loss column event.version
ALTER TABLE "event" DROP COLUMN "version";

-- svc: data-loss column event.edited_at
ALTER TABLE "event" DROP COLUMN "edited_at";

-- svc: data-loss column event.edited_by
ALTER TABLE "event" DROP COLUMN "edited_by";

-- svc: data-loss column event.withdrawn_at
ALTER TABLE "event" DROP COLUMN "withdrawn_at";

-- svc: data-loss column event.redacted_at
ALTER TABLE "event" DROP COLUMN "redacted_at";
