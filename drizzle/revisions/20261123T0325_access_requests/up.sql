-- access requests
-- Revision 20261123T0325_access_requests, after 20261122T2330_initial

CREATE TABLE "access_lease" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "access_lease_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "role_id" bigint NOT NULL,
  "request_id" bigint,
  "incident_id" bigint,
  "incident_name" text,
  "as_participant" boolean DEFAULT false NOT NULL,
  "user_name" text NOT NULL,
  "token_id" uuid NOT NULL,
  "idempotency_key" text,
  "name" text NOT NULL,
  "handle" text,
  "state" text DEFAULT 'Issuing' NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "issued_at" timestamp with time zone,
  "expires_at" timestamp with time zone NOT NULL,
  "max_expires_at" timestamp with time zone NOT NULL,
  "end_reason" text,
  "attempts" integer DEFAULT 0 NOT NULL,
  "lease_until" timestamp with time zone,
  "due_at" timestamp with time zone,
  "finished_at" timestamp with time zone,
  "error" text,
  CONSTRAINT "access_lease_state_known" CHECK (state in ('Issuing', 'Active', 'Revoking', 'Revoked', 'Failed')),
  CONSTRAINT "access_lease_finished" CHECK ((state in ('Revoked', 'Failed')) = (finished_at is not null)),
  CONSTRAINT "access_lease_issued" CHECK (state <> 'Active' or issued_at is not null)
);

CREATE TABLE "access_request" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "access_request_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "role_id" bigint NOT NULL,
  "user_name" text NOT NULL,
  "incident_id" bigint,
  "incident_name" text,
  "as_participant" boolean DEFAULT false NOT NULL,
  "reason" text NOT NULL,
  "duration" integer NOT NULL,
  "state" text DEFAULT 'Pending' NOT NULL,
  "break_glass" boolean DEFAULT false NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "expires_at" timestamp with time zone NOT NULL,
  "decided_at" timestamp with time zone,
  "decided_by" text,
  "note" text,
  "reviewed_at" timestamp with time zone,
  "reviewed_by" text,
  CONSTRAINT "access_request_state_known" CHECK (state in ('Pending', 'Approved', 'Denied', 'Cancelled', 'Expired')),
  CONSTRAINT "access_request_decided" CHECK ((state = 'Pending') = (decided_at is null))
);

CREATE TABLE "access_role" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "access_role_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "slug" text NOT NULL,
  "description" text NOT NULL,
  "plugin_slug" text NOT NULL,
  "settings" jsonb NOT NULL,
  "secrets" bytea,
  "groups" text[] NOT NULL,
  "default_duration" integer NOT NULL,
  "max_duration" integer NOT NULL,
  "approval" text NOT NULL,
  "incident_required" boolean NOT NULL,
  "break_glass" boolean NOT NULL,
  "disabled_at" timestamp with time zone,
  "version" integer DEFAULT 1 NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "updated_at" timestamp with time zone NOT NULL,
  CONSTRAINT "access_role_approval_known" CHECK (approval in ('none', 'commander', 'admin')),
  CONSTRAINT "access_role_durations" CHECK (0 < default_duration and default_duration <= max_duration)
);

CREATE INDEX "token_user_idx" ON "token" USING btree ("user_name","issued_at");

CREATE UNIQUE INDEX "access_lease_name_idx" ON "access_lease" USING btree ("name");

CREATE INDEX "access_lease_created_idx" ON "access_lease" USING btree ("created_at","id");

CREATE INDEX "access_lease_user_idx" ON "access_lease" USING btree ("user_name","created_at","id");

CREATE INDEX "access_lease_role_idx" ON "access_lease" USING btree ("role_id");

CREATE INDEX "access_lease_request_idx" ON "access_lease" USING btree ("request_id");

CREATE INDEX "access_lease_incident_idx" ON "access_lease" USING btree ("incident_id");

CREATE INDEX "access_lease_due_idx" ON "access_lease" USING btree ("role_id","due_at") WHERE finished_at is null;

CREATE INDEX "access_request_created_idx" ON "access_request" USING btree ("created_at","id");

CREATE INDEX "access_request_user_idx" ON "access_request" USING btree ("user_name","created_at","id");

CREATE INDEX "access_request_role_idx" ON "access_request" USING btree ("role_id");

CREATE INDEX "access_request_incident_idx" ON "access_request" USING btree ("incident_id");

CREATE INDEX "access_request_pending_idx" ON "access_request" USING btree ("expires_at") WHERE state = 'Pending';

CREATE INDEX "access_request_unreviewed_idx" ON "access_request" USING btree ("id") WHERE break_glass and reviewed_at is null;

CREATE UNIQUE INDEX "access_role_slug_idx" ON "access_role" USING btree ("slug");

ALTER TABLE "access_lease" ADD CONSTRAINT "access_lease_role_id_access_role_id_fk" FOREIGN KEY ("role_id") REFERENCES "public"."access_role"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "access_lease" ADD CONSTRAINT "access_lease_request_id_access_request_id_fk" FOREIGN KEY ("request_id") REFERENCES "public"."access_request"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "access_lease" ADD CONSTRAINT "access_lease_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE set null ON UPDATE no action;

ALTER TABLE "access_request" ADD CONSTRAINT "access_request_role_id_access_role_id_fk" FOREIGN KEY ("role_id") REFERENCES "public"."access_role"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "access_request" ADD CONSTRAINT "access_request_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE set null ON UPDATE no action;
