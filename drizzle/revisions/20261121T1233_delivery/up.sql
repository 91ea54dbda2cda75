-- delivery
-- Revision 20261121T1233_delivery, after 20261121T1150_worker

CREATE TABLE "delivery" (
  "key" text PRIMARY KEY NOT NULL,
  "task" text NOT NULL,
  "incident_id" bigint NOT NULL,
  "about" jsonb NOT NULL,
  "individual_id" bigint,
  "plugin_slug" text NOT NULL,
  "subject" text NOT NULL,
  "text" text NOT NULL,
  "state" text DEFAULT 'Queued' NOT NULL,
  "job_id" uuid,
  "attempts" integer DEFAULT 0 NOT NULL,
  "queued_at" timestamp with time zone NOT NULL,
  "due_at" timestamp with time zone,
  "finished_at" timestamp with time zone,
  "last_error" text,
  CONSTRAINT "delivery_state_known" CHECK (state in ('Queued', 'Done', 'Dead')),
  CONSTRAINT "delivery_job_of_state" CHECK ((state = 'Queued') = (job_id is not null)),
  CONSTRAINT "delivery_due_of_state" CHECK ((state = 'Queued') = (due_at is not null)),
  CONSTRAINT "delivery_finished_of_state" CHECK ((state = 'Queued') = (finished_at is null)),
  CONSTRAINT "delivery_dead_says_why" CHECK (state <> 'Dead' or last_error is not null)
);

CREATE INDEX "delivery_state_idx" ON "delivery" USING btree ("state","queued_at","key");

CREATE INDEX "delivery_incident_idx" ON "delivery" USING btree ("incident_id");

CREATE INDEX "delivery_individual_idx" ON "delivery" USING btree ("individual_id");

CREATE UNIQUE INDEX "delivery_job_idx" ON "delivery" USING btree ("job_id");

ALTER TABLE "delivery" ADD CONSTRAINT "delivery_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "delivery" ADD CONSTRAINT "delivery_individual_id_individual_id_fk" FOREIGN KEY ("individual_id") REFERENCES "public"."individual"("id") ON DELETE cascade ON UPDATE no action;
