-- worker
-- Revision 20261121T1150_worker, after 20261121T0941_search

CREATE TABLE "run" (
  "task" text NOT NULL,
  "slot" timestamp with time zone NOT NULL,
  "state" text NOT NULL,
  "trigger" text NOT NULL,
  "attempt" integer DEFAULT 1 NOT NULL,
  "owner" text NOT NULL,
  "lease_until" timestamp with time zone,
  "started_at" timestamp with time zone,
  "finished_at" timestamp with time zone,
  "error" text,
  "result" jsonb DEFAULT '{}'::jsonb NOT NULL,
  CONSTRAINT "run_pk" PRIMARY KEY("task","slot"),
  CONSTRAINT "run_state_known" CHECK (state in ('Running', 'Done', 'Failed', 'Missed')),
  CONSTRAINT "run_trigger_known" CHECK (trigger in ('schedule', 'eager')),
  CONSTRAINT "run_attempt" CHECK (attempt > 0),
  CONSTRAINT "run_lease_of_state" CHECK ((state = 'Running') = (lease_until is not null)),
  CONSTRAINT "run_finished_of_state" CHECK ((state = 'Running') = (finished_at is null)),
  CONSTRAINT "run_started_of_state" CHECK ((state = 'Missed') = (started_at is null)),
  CONSTRAINT "run_failed_says_why" CHECK ((state = 'Failed') = (error is not null))
);

CREATE TABLE "run_fault" (
  "task" text NOT NULL,
  "slot" timestamp with time zone NOT NULL,
  "item" text NOT NULL,
  "reason" text NOT NULL,
  CONSTRAINT "run_fault_pk" PRIMARY KEY("task","slot","item")
);

CREATE TABLE "scheduled_task" (
  "name" text PRIMARY KEY NOT NULL,
  "since" timestamp with time zone NOT NULL,
  "paused_at" timestamp with time zone
);

CREATE TABLE "worker" (
  "id" text PRIMARY KEY NOT NULL,
  "host" text NOT NULL,
  "pid" integer NOT NULL,
  "started_at" timestamp with time zone NOT NULL,
  "seen_at" timestamp with time zone NOT NULL
);

CREATE UNIQUE INDEX "run_one_running_idx" ON "run" USING btree ("task") WHERE state = 'Running';

ALTER TABLE "run_fault" ADD CONSTRAINT "run_fault_run_fk" FOREIGN KEY ("task","slot") REFERENCES "public"."run"("task","slot") ON DELETE cascade ON UPDATE no action;
