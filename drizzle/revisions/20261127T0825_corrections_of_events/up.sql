-- corrections of events
-- Revision 20261127T0825_corrections_of_events, after 20261127T0819_sign_ins_at_the_issuer

CREATE TABLE "event_revision" (
  "event_id" bigint NOT NULL,
  "version" integer NOT NULL,
  "text" jsonb NOT NULL,
  "author" text NOT NULL,
  "at" timestamp with time zone NOT NULL,
  CONSTRAINT "event_revision_pk" PRIMARY KEY("event_id","version")
);

ALTER TABLE "event" ADD COLUMN "version" integer DEFAULT 1 NOT NULL;

ALTER TABLE "event" ADD COLUMN "edited_at" timestamp with time zone;

ALTER TABLE "event" ADD COLUMN "edited_by" text;

ALTER TABLE "event" ADD COLUMN "withdrawn_at" timestamp with time zone;

ALTER TABLE "event" ADD COLUMN "redacted_at" timestamp with time zone;

CREATE INDEX "event_text_idx" ON "event" USING btree ("kind",(coalesce("data" ->> 'report_id', "data" ->> 'message_id'))) WHERE kind in ('report.written', 'message.sent');

ALTER TABLE "event_revision" ADD CONSTRAINT "event_revision_event_id_event_id_fk" FOREIGN KEY ("event_id") REFERENCES "public"."event"("id") ON DELETE cascade ON UPDATE no action;
