-- initial
-- Revision 20261125T2150_initial, the first

CREATE SEQUENCE "public"."incident_name_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;

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

CREATE TABLE "application" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "application_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "name" text NOT NULL,
  "description" text DEFAULT '' NOT NULL,
  "uri" text,
  "source" text,
  "external_id" text,
  "deleted_at" timestamp with time zone,
  "version" integer DEFAULT 1 NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "updated_at" timestamp with time zone NOT NULL,
  "search" tsvector,
  CONSTRAINT "application_source_with_id" CHECK ((source is null) = (external_id is null))
);

CREATE TABLE "audit_log" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "audit_log_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "at" timestamp with time zone NOT NULL,
  "actor" text NOT NULL,
  "action" text NOT NULL,
  "address" text,
  "subject" text,
  "data" jsonb DEFAULT '{}'::jsonb NOT NULL
);

CREATE TABLE "authority_key" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "authority_key_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "kind" text NOT NULL,
  "name" text NOT NULL,
  "public" text NOT NULL,
  "private_key" bytea NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "active_at" timestamp with time zone NOT NULL,
  "expires_at" timestamp with time zone,
  "revoked_at" timestamp with time zone,
  CONSTRAINT "authority_key_kind_known" CHECK (kind in ('ssh', 'x509')),
  CONSTRAINT "authority_key_revoked" CHECK (revoked_at is null or expires_at is not null)
);

CREATE TABLE "challenge" (
  "id" uuid PRIMARY KEY NOT NULL,
  "token_hash" bytea NOT NULL,
  "user_name" text NOT NULL,
  "user_code" text NOT NULL,
  "code_challenge" text,
  "request_address" text NOT NULL,
  "client" text NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "expires_at" timestamp with time zone NOT NULL,
  "session_hash" bytea,
  "bound_at" timestamp with time zone,
  "approved_at" timestamp with time zone,
  "denied_at" timestamp with time zone,
  "groups" text[] DEFAULT '{}' NOT NULL,
  "collected_at" timestamp with time zone,
  "wrong_verifier_at" timestamp with time zone,
  CONSTRAINT "challenge_token_hash_unique" UNIQUE("token_hash"),
  CONSTRAINT "challenge_one_decision" CHECK (approved_at is null or denied_at is null),
  CONSTRAINT "challenge_approved_by_a_browser" CHECK (approved_at is null or bound_at is not null),
  CONSTRAINT "challenge_collected_after_approval" CHECK (collected_at is null or approved_at is not null)
);

CREATE TABLE "client_certificate" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "client_certificate_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "sha256" text NOT NULL,
  "serial" text NOT NULL,
  "jti" uuid NOT NULL,
  "authority_key_id" bigint NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "expires_at" timestamp with time zone NOT NULL,
  CONSTRAINT "client_certificate_sha256_unique" UNIQUE("sha256"),
  CONSTRAINT "client_certificate_serial_unique" UNIQUE("serial")
);

CREATE TABLE "conversation" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "conversation_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "incident_id" bigint NOT NULL,
  "plugin_slug" text NOT NULL,
  "external_id" text,
  "weblink" text,
  "created_at" timestamp with time zone NOT NULL,
  "archived_at" timestamp with time zone
);

CREATE TABLE "conversation_message" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "conversation_message_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "conversation_id" bigint NOT NULL,
  "at" timestamp with time zone NOT NULL,
  "author_id" bigint,
  "recipient_id" bigint,
  "text" text NOT NULL,
  "delivery_key" text,
  "origin" text,
  "search" tsvector,
  CONSTRAINT "conversation_message_says_something" CHECK (text <> '')
);

CREATE TABLE "cost_formula" (
  "version" integer PRIMARY KEY NOT NULL,
  "yearly_cost" integer NOT NULL,
  "yearly_hours" integer NOT NULL,
  "daily_hours" numeric NOT NULL,
  "review_hours" numeric NOT NULL,
  "review_hours_per_participant" numeric NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  CONSTRAINT "cost_formula_version" CHECK (version > 0),
  CONSTRAINT "cost_formula_rate" CHECK (yearly_cost >= 0 and yearly_hours > 0),
  CONSTRAINT "cost_formula_hours" CHECK (daily_hours between 0 and 24),
  CONSTRAINT "cost_formula_review" CHECK (review_hours >= 0 and review_hours_per_participant >= 0)
);

CREATE TABLE "cost_formula_role" (
  "formula_version" integer NOT NULL,
  "role" text NOT NULL,
  "multiplier" numeric NOT NULL,
  CONSTRAINT "cost_formula_role_pk" PRIMARY KEY("formula_version","role"),
  CONSTRAINT "cost_formula_role_known" CHECK (role in ('commander', 'scribe', 'liaison', 'participant', 'reporter', 'observer')),
  CONSTRAINT "cost_formula_role_multiplier" CHECK (multiplier >= 0)
);

CREATE TABLE "definition" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "definition_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "text" text NOT NULL,
  "source" text,
  "external_id" text,
  "version" integer DEFAULT 1 NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "updated_at" timestamp with time zone NOT NULL,
  "search" tsvector,
  CONSTRAINT "definition_source_with_id" CHECK ((source is null) = (external_id is null))
);

CREATE TABLE "definition_term" (
  "definition_id" bigint NOT NULL,
  "term_id" bigint NOT NULL,
  CONSTRAINT "definition_term_pk" PRIMARY KEY("definition_id","term_id")
);

CREATE TABLE "delivery" (
  "key" text PRIMARY KEY NOT NULL,
  "task" text NOT NULL,
  "incident_id" bigint NOT NULL,
  "about" jsonb NOT NULL,
  "individual_id" bigint,
  "recipient" text,
  "plugin_slug" text NOT NULL,
  "subject" text NOT NULL,
  "text" text NOT NULL,
  "state" text DEFAULT 'Queued' NOT NULL,
  "queued_at" timestamp with time zone NOT NULL,
  "attempts" integer DEFAULT 0 NOT NULL,
  "lease_until" timestamp with time zone,
  "due_at" timestamp with time zone,
  "finished_at" timestamp with time zone,
  "error" text,
  CONSTRAINT "delivery_state_known" CHECK (state in ('Queued', 'Done', 'Dead', 'Split')),
  CONSTRAINT "delivery_lease_of_state" CHECK (state = 'Queued' or lease_until is null),
  CONSTRAINT "delivery_due_of_state" CHECK ((state = 'Queued') = (due_at is not null)),
  CONSTRAINT "delivery_finished_of_state" CHECK ((state = 'Queued') = (finished_at is null)),
  CONSTRAINT "delivery_to_one" CHECK (recipient is null or individual_id is null),
  CONSTRAINT "delivery_split_to_everyone" CHECK (state <> 'Split' or (recipient is null and individual_id is null)),
  CONSTRAINT "delivery_dead_says_why" CHECK (state <> 'Dead' or error is not null)
);

CREATE TABLE "document" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "document_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "name" text NOT NULL,
  "description" text DEFAULT '' NOT NULL,
  "resource_type" text NOT NULL,
  "plugin_slug" text,
  "resource_id" text,
  "weblink" text,
  "incident_id" bigint,
  "task_cursor" text,
  "task_synced_at" timestamp with time zone,
  "content_hash" bytea,
  "term_content_hash" bytea,
  "term_vocabulary" text,
  "version" integer DEFAULT 1 NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "updated_at" timestamp with time zone NOT NULL,
  "search" tsvector,
  CONSTRAINT "document_resource_id_of_a_plugin" CHECK (resource_id is null or plugin_slug is not null)
);

CREATE TABLE "document_content" (
  "document_id" bigint PRIMARY KEY NOT NULL,
  "content" text NOT NULL,
  "hash" bytea NOT NULL,
  "version" integer DEFAULT 1 NOT NULL,
  "updated_at" timestamp with time zone NOT NULL,
  CONSTRAINT "document_content_hash_is_sha256" CHECK (octet_length(hash) = 32)
);

CREATE TABLE "document_incident_priority" (
  "document_id" bigint NOT NULL,
  "incident_priority_id" bigint NOT NULL,
  CONSTRAINT "document_incident_priority_pk" PRIMARY KEY("document_id","incident_priority_id")
);

CREATE TABLE "document_incident_type" (
  "document_id" bigint NOT NULL,
  "incident_type_id" bigint NOT NULL,
  CONSTRAINT "document_incident_type_pk" PRIMARY KEY("document_id","incident_type_id")
);

CREATE TABLE "document_term" (
  "document_id" bigint NOT NULL,
  "term_id" bigint NOT NULL,
  "source" text NOT NULL,
  CONSTRAINT "document_term_pk" PRIMARY KEY("document_id","term_id"),
  CONSTRAINT "document_term_source_known" CHECK (source in ('Found', 'Given'))
);

CREATE TABLE "event" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "event_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "incident_id" bigint NOT NULL,
  "at" timestamp with time zone NOT NULL,
  "actor" text NOT NULL,
  "source" text NOT NULL,
  "kind" text NOT NULL,
  "description" text NOT NULL,
  "data" jsonb DEFAULT '{}'::jsonb NOT NULL,
  "search" tsvector
);

CREATE TABLE "flow_step" (
  "incident_id" bigint NOT NULL,
  "step" text NOT NULL,
  "state" text DEFAULT 'Pending' NOT NULL,
  "attempts" integer DEFAULT 0 NOT NULL,
  "lease_until" timestamp with time zone,
  "due_at" timestamp with time zone,
  "finished_at" timestamp with time zone,
  "error" text,
  CONSTRAINT "flow_step_pk" PRIMARY KEY("incident_id","step"),
  CONSTRAINT "flow_step_state_known" CHECK (state in ('Pending', 'Running', 'Done', 'Failed')),
  CONSTRAINT "flow_step_lease_of_state" CHECK ((state = 'Running') = (lease_until is not null)),
  CONSTRAINT "flow_step_finished_of_state" CHECK ((state = 'Done') = (finished_at is not null)),
  CONSTRAINT "flow_step_failed_says_why" CHECK (state <> 'Failed' or error is not null)
);

CREATE TABLE "idempotency_key" (
  "actor" text NOT NULL,
  "method" text NOT NULL,
  "path" text NOT NULL,
  "key" text NOT NULL,
  "request_hash" bytea NOT NULL,
  "state" text DEFAULT 'Running' NOT NULL,
  "lease_until" timestamp with time zone,
  "response_status" smallint,
  "response_headers" jsonb,
  "response_body" text,
  "created_at" timestamp with time zone NOT NULL,
  "expires_at" timestamp with time zone NOT NULL,
  CONSTRAINT "idempotency_key_pk" PRIMARY KEY("actor","key","method","path"),
  CONSTRAINT "idempotency_key_state_known" CHECK (state in ('Running', 'Done')),
  CONSTRAINT "idempotency_key_lease_of_state" CHECK ((state = 'Running') = (lease_until is not null)),
  CONSTRAINT "idempotency_key_answer_of_state" CHECK ((state = 'Done') = (response_status is not null))
);

CREATE TABLE "incident" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "incident_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "name" text DEFAULT 'INC-' || nextval('incident_name_seq') NOT NULL,
  "title" text NOT NULL,
  "description" text NOT NULL,
  "status" text DEFAULT 'Active' NOT NULL,
  "visibility" text DEFAULT 'Open' NOT NULL,
  "incident_type_id" bigint NOT NULL,
  "incident_priority_id" bigint NOT NULL,
  "resolution" text,
  "reported_at" timestamp with time zone NOT NULL,
  "stable_at" timestamp with time zone,
  "closed_at" timestamp with time zone,
  "cost" bigint DEFAULT 0 NOT NULL,
  "cost_basis" integer DEFAULT 1 NOT NULL,
  "costed_basis" integer DEFAULT 0 NOT NULL,
  "version" integer DEFAULT 1 NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "updated_at" timestamp with time zone NOT NULL,
  "search" tsvector,
  CONSTRAINT "incident_status_known" CHECK (status in ('Active', 'Stable', 'Closed')),
  CONSTRAINT "incident_visibility_known" CHECK (visibility in ('Open', 'Restricted')),
  CONSTRAINT "incident_stable_at_of_status" CHECK ((status = 'Active') = (stable_at is null)),
  CONSTRAINT "incident_closed_at_of_status" CHECK ((status = 'Closed') = (closed_at is not null))
);

CREATE TABLE "incident_application" (
  "incident_id" bigint NOT NULL,
  "application_id" bigint NOT NULL,
  CONSTRAINT "incident_application_pk" PRIMARY KEY("incident_id","application_id")
);

CREATE TABLE "incident_cost" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "incident_cost_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "incident_id" bigint NOT NULL,
  "computed_at" timestamp with time zone NOT NULL,
  "cost" bigint NOT NULL,
  "formula_version" integer NOT NULL,
  "seconds" bigint NOT NULL,
  "review_hours" numeric NOT NULL,
  "rate" integer NOT NULL,
  CONSTRAINT "incident_cost_not_negative" CHECK (cost >= 0 and seconds >= 0 and review_hours >= 0)
);

CREATE TABLE "incident_link" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "incident_link_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "incident_id" bigint NOT NULL,
  "linked_id" bigint NOT NULL,
  "kind" text NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  CONSTRAINT "incident_link_kind_known" CHECK (kind in ('related', 'duplicate')),
  CONSTRAINT "incident_link_of_two" CHECK (incident_id <> linked_id)
);

CREATE TABLE "incident_priority" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "incident_priority_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "name" text NOT NULL,
  "description" text DEFAULT '' NOT NULL,
  "rank" integer DEFAULT 0 NOT NULL,
  "reminder_hours" integer NOT NULL,
  "reporter_commands" boolean DEFAULT false NOT NULL,
  "version" integer DEFAULT 1 NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "updated_at" timestamp with time zone NOT NULL,
  CONSTRAINT "incident_priority_reminds" CHECK (reminder_hours > 0)
);

CREATE TABLE "incident_service" (
  "incident_id" bigint NOT NULL,
  "service_id" bigint NOT NULL,
  CONSTRAINT "incident_service_pk" PRIMARY KEY("incident_id","service_id")
);

CREATE TABLE "incident_type" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "incident_type_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "name" text NOT NULL,
  "description" text DEFAULT '' NOT NULL,
  "visibility" text DEFAULT 'Open' NOT NULL,
  "commander_service_id" bigint,
  "version" integer DEFAULT 1 NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "updated_at" timestamp with time zone NOT NULL,
  "search" tsvector,
  CONSTRAINT "incident_type_visibility_known" CHECK (visibility in ('Open', 'Restricted'))
);

CREATE TABLE "incident_type_template" (
  "incident_type_id" bigint NOT NULL,
  "resource_type" text NOT NULL,
  "document_id" bigint NOT NULL,
  CONSTRAINT "incident_type_template_pk" PRIMARY KEY("incident_type_id","resource_type")
);

CREATE TABLE "individual" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "individual_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "name" text NOT NULL,
  "email" text NOT NULL,
  "version" integer DEFAULT 1 NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "updated_at" timestamp with time zone NOT NULL,
  "search" tsvector,
  "listed" boolean DEFAULT true NOT NULL,
  CONSTRAINT "individual_email_canonical" CHECK (email ~ '^[^A-Z[:space:]@]+@[^A-Z[:space:]@]+$')
);

CREATE TABLE "individual_incident_priority" (
  "individual_id" bigint NOT NULL,
  "incident_priority_id" bigint NOT NULL,
  CONSTRAINT "individual_incident_priority_pk" PRIMARY KEY("individual_id","incident_priority_id")
);

CREATE TABLE "individual_incident_type" (
  "individual_id" bigint NOT NULL,
  "incident_type_id" bigint NOT NULL,
  CONSTRAINT "individual_incident_type_pk" PRIMARY KEY("individual_id","incident_type_id")
);

CREATE TABLE "individual_term" (
  "individual_id" bigint NOT NULL,
  "term_id" bigint NOT NULL,
  CONSTRAINT "individual_term_pk" PRIMARY KEY("individual_id","term_id")
);

CREATE TABLE "participant" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "participant_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "incident_id" bigint NOT NULL,
  "individual_id" bigint NOT NULL,
  "joined_at" timestamp with time zone NOT NULL,
  "left_at" timestamp with time zone,
  CONSTRAINT "participant_of_incident" UNIQUE("id","incident_id")
);

CREATE TABLE "participant_group" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "participant_group_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "incident_id" bigint NOT NULL,
  "plugin_slug" text NOT NULL,
  "external_id" text,
  "name" text NOT NULL,
  "email" text,
  "weblink" text,
  "created_at" timestamp with time zone NOT NULL
);

CREATE TABLE "participant_group_member" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "participant_group_member_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "participant_group_id" bigint NOT NULL,
  "individual_id" bigint,
  "team_id" bigint,
  "added_at" timestamp with time zone NOT NULL,
  CONSTRAINT "participant_group_member_is_one" CHECK (num_nonnulls(individual_id, team_id) = 1)
);

CREATE TABLE "participant_role" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "participant_role_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "participant_id" bigint NOT NULL,
  "incident_id" bigint NOT NULL,
  "role" text NOT NULL,
  "assumed_at" timestamp with time zone NOT NULL,
  "renounced_at" timestamp with time zone,
  CONSTRAINT "participant_role_known" CHECK (role in ('commander', 'scribe', 'liaison', 'participant', 'reporter', 'observer'))
);

CREATE TABLE "recommendation" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "recommendation_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "incident_id" bigint NOT NULL,
  "document_id" bigint,
  "individual_id" bigint,
  "team_id" bigint,
  "plugin_slug" text NOT NULL,
  "reasons" jsonb NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  CONSTRAINT "recommendation_of_one" CHECK (num_nonnulls(document_id, individual_id, team_id) = 1)
);

CREATE TABLE "rotation" (
  "service_id" bigint PRIMARY KEY NOT NULL,
  "starts_at" timestamp with time zone NOT NULL,
  "shift_hours" integer NOT NULL,
  CONSTRAINT "rotation_turns" CHECK (shift_hours > 0)
);

CREATE TABLE "rotation_member" (
  "service_id" bigint NOT NULL,
  "position" integer NOT NULL,
  "individual_id" bigint NOT NULL,
  CONSTRAINT "rotation_member_pk" PRIMARY KEY("service_id","position")
);

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

CREATE TABLE "service" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "service_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "name" text NOT NULL,
  "description" text DEFAULT '' NOT NULL,
  "plugin_slug" text,
  "external_id" text,
  "version" integer DEFAULT 1 NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "updated_at" timestamp with time zone NOT NULL,
  "search" tsvector,
  CONSTRAINT "service_external_id_of_a_plugin" CHECK (external_id is null or plugin_slug is not null)
);

CREATE TABLE "session" (
  "id_hash" bytea PRIMARY KEY NOT NULL,
  "user_name" text,
  "groups" text[] DEFAULT '{}' NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "expires_at" timestamp with time zone NOT NULL,
  "signed_in_at" timestamp with time zone
);

CREATE TABLE "setting" (
  "name" text PRIMARY KEY NOT NULL,
  "value" text,
  "recorded_by" text NOT NULL,
  "recorded_at" timestamp with time zone NOT NULL
);

CREATE TABLE "sign_in" (
  "state_hash" bytea PRIMARY KEY NOT NULL,
  "session_hash" bytea NOT NULL,
  "nonce" text NOT NULL,
  "pkce_verifier" text NOT NULL,
  "return_to" text NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "expires_at" timestamp with time zone NOT NULL
);

CREATE TABLE "signing_key" (
  "kid" text PRIMARY KEY NOT NULL,
  "algorithm" text NOT NULL,
  "public_jwk" jsonb NOT NULL,
  "private_key" bytea NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "active_at" timestamp with time zone NOT NULL,
  "expires_at" timestamp with time zone
);

CREATE TABLE "status_report" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "status_report_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "incident_id" bigint NOT NULL,
  "author_id" bigint NOT NULL,
  "conditions" text NOT NULL,
  "actions" text NOT NULL,
  "needs" text NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "search" tsvector
);

CREATE TABLE "status_report_reminder" (
  "incident_id" bigint NOT NULL,
  "anchor" timestamp with time zone NOT NULL,
  "k" integer NOT NULL,
  "reminded_at" timestamp with time zone NOT NULL,
  CONSTRAINT "status_report_reminder_pk" PRIMARY KEY("incident_id","anchor","k"),
  CONSTRAINT "status_report_reminder_k" CHECK (k > 0)
);

CREATE TABLE "task" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "task_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "incident_id" bigint NOT NULL,
  "description" text NOT NULL,
  "status" text DEFAULT 'Open' NOT NULL,
  "creator_id" bigint,
  "owner_id" bigint,
  "resolve_by" timestamp with time zone NOT NULL,
  "resolved_at" timestamp with time zone,
  "document_id" bigint,
  "external_id" text,
  "deleted_at" timestamp with time zone,
  "reminders" boolean DEFAULT true NOT NULL,
  "last_reminder_at" timestamp with time zone,
  "version" integer DEFAULT 1 NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "updated_at" timestamp with time zone NOT NULL,
  "search" tsvector,
  CONSTRAINT "task_status_known" CHECK (status in ('Open', 'Resolved', 'Cancelled')),
  CONSTRAINT "task_resolved_at_of_status" CHECK ((status = 'Resolved') = (resolved_at is not null)),
  CONSTRAINT "task_external_id_of_a_document" CHECK (external_id is null or document_id is not null),
  CONSTRAINT "task_deleted_upstream" CHECK (deleted_at is null or external_id is not null)
);

CREATE TABLE "task_assignee" (
  "task_id" bigint NOT NULL,
  "individual_id" bigint NOT NULL,
  CONSTRAINT "task_assignee_pk" PRIMARY KEY("task_id","individual_id")
);

CREATE TABLE "team" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "team_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "name" text NOT NULL,
  "description" text DEFAULT '' NOT NULL,
  "email" text,
  "version" integer DEFAULT 1 NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "updated_at" timestamp with time zone NOT NULL,
  "search" tsvector,
  CONSTRAINT "team_email_canonical" CHECK (email ~ '^[^A-Z[:space:]@]+@[^A-Z[:space:]@]+$')
);

CREATE TABLE "team_incident_priority" (
  "team_id" bigint NOT NULL,
  "incident_priority_id" bigint NOT NULL,
  CONSTRAINT "team_incident_priority_pk" PRIMARY KEY("team_id","incident_priority_id")
);

CREATE TABLE "team_incident_type" (
  "team_id" bigint NOT NULL,
  "incident_type_id" bigint NOT NULL,
  CONSTRAINT "team_incident_type_pk" PRIMARY KEY("team_id","incident_type_id")
);

CREATE TABLE "team_term" (
  "team_id" bigint NOT NULL,
  "term_id" bigint NOT NULL,
  CONSTRAINT "team_term_pk" PRIMARY KEY("team_id","term_id")
);

CREATE TABLE "term" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "term_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "text" text NOT NULL,
  "discoverable" boolean DEFAULT true NOT NULL,
  "source" text,
  "external_id" text,
  "deleted_at" timestamp with time zone,
  "version" integer DEFAULT 1 NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "updated_at" timestamp with time zone NOT NULL,
  "search" tsvector,
  CONSTRAINT "term_source_with_id" CHECK ((source is null) = (external_id is null))
);

CREATE TABLE "token" (
  "jti" uuid PRIMARY KEY NOT NULL,
  "challenge_id" uuid,
  "user_name" text NOT NULL,
  "groups" text[] DEFAULT '{}' NOT NULL,
  "issued_at" timestamp with time zone NOT NULL,
  "expires_at" timestamp with time zone NOT NULL,
  "revoked_at" timestamp with time zone,
  "certificate_sha256" text,
  CONSTRAINT "token_challenge_id_unique" UNIQUE("challenge_id")
);

CREATE TABLE "worker" (
  "id" text PRIMARY KEY NOT NULL,
  "host" text NOT NULL,
  "pid" integer NOT NULL,
  "started_at" timestamp with time zone NOT NULL,
  "seen_at" timestamp with time zone NOT NULL
);

CREATE UNIQUE INDEX "access_lease_name_idx" ON "access_lease" USING btree ("name");

CREATE INDEX "access_lease_created_idx" ON "access_lease" USING btree ("created_at","id");

CREATE INDEX "access_lease_user_idx" ON "access_lease" USING btree ("user_name","created_at","id");

CREATE INDEX "access_lease_role_idx" ON "access_lease" USING btree ("role_id");

CREATE INDEX "access_lease_request_idx" ON "access_lease" USING btree ("request_id");

CREATE INDEX "access_lease_incident_idx" ON "access_lease" USING btree ("incident_id");

CREATE INDEX "access_lease_due_idx" ON "access_lease" USING btree ("role_id","due_at") WHERE finished_at is null;

CREATE INDEX "access_lease_handle_idx" ON "access_lease" USING btree ("expires_at") WHERE handle is not null;

CREATE INDEX "access_request_created_idx" ON "access_request" USING btree ("created_at","id");

CREATE INDEX "access_request_user_idx" ON "access_request" USING btree ("user_name","created_at","id");

CREATE INDEX "access_request_role_idx" ON "access_request" USING btree ("role_id");

CREATE INDEX "access_request_incident_idx" ON "access_request" USING btree ("incident_id");

CREATE INDEX "access_request_pending_idx" ON "access_request" USING btree ("expires_at") WHERE state = 'Pending';

CREATE INDEX "access_request_unreviewed_idx" ON "access_request" USING btree ("id") WHERE break_glass and reviewed_at is null;

CREATE UNIQUE INDEX "access_role_slug_idx" ON "access_role" USING btree ("slug");

CREATE UNIQUE INDEX "application_external_id_idx" ON "application" USING btree ("source","external_id");

CREATE UNIQUE INDEX "application_own_name_idx" ON "application" USING btree ("name") WHERE source is null and deleted_at is null;

CREATE INDEX "application_name_idx" ON "application" USING btree ("name","id");

CREATE INDEX "application_search_idx" ON "application" USING gin ("search");

CREATE INDEX "audit_log_at_idx" ON "audit_log" USING btree ("at");

CREATE INDEX "audit_log_subject_idx" ON "audit_log" USING btree ("subject");

CREATE INDEX "authority_key_name_idx" ON "authority_key" USING btree ("kind","name");

CREATE INDEX "challenge_expires_at_idx" ON "challenge" USING btree ("expires_at");

CREATE INDEX "challenge_session_hash_idx" ON "challenge" USING btree ("session_hash");

CREATE INDEX "client_certificate_jti_idx" ON "client_certificate" USING btree ("jti");

CREATE INDEX "client_certificate_key_idx" ON "client_certificate" USING btree ("authority_key_id");

CREATE INDEX "client_certificate_created_at_idx" ON "client_certificate" USING btree ("created_at","id");

CREATE INDEX "client_certificate_expires_at_idx" ON "client_certificate" USING btree ("expires_at");

CREATE UNIQUE INDEX "conversation_incident_idx" ON "conversation" USING btree ("incident_id","plugin_slug");

CREATE UNIQUE INDEX "conversation_external_id_idx" ON "conversation" USING btree ("plugin_slug","external_id");

CREATE INDEX "conversation_message_conversation_idx" ON "conversation_message" USING btree ("conversation_id","at","id");

CREATE INDEX "conversation_message_author_idx" ON "conversation_message" USING btree ("author_id");

CREATE INDEX "conversation_message_recipient_idx" ON "conversation_message" USING btree ("recipient_id");

CREATE INDEX "conversation_message_search_block_idx" ON "conversation_message" USING gin ("search",(array["id" >> 12]));

CREATE UNIQUE INDEX "conversation_message_delivery_idx" ON "conversation_message" USING btree ("conversation_id","delivery_key");

CREATE UNIQUE INDEX "definition_external_id_idx" ON "definition" USING btree ("source","external_id");

CREATE INDEX "definition_search_idx" ON "definition" USING gin ("search");

CREATE INDEX "definition_term_term_idx" ON "definition_term" USING btree ("term_id");

CREATE INDEX "delivery_state_idx" ON "delivery" USING btree ("state","queued_at","key");

CREATE INDEX "delivery_incident_idx" ON "delivery" USING btree ("incident_id");

CREATE INDEX "delivery_individual_idx" ON "delivery" USING btree ("individual_id");

CREATE INDEX "delivery_due_idx" ON "delivery" USING btree ("plugin_slug","due_at") WHERE state = 'Queued';

CREATE UNIQUE INDEX "document_resource_id_idx" ON "document" USING btree ("plugin_slug","resource_id");

CREATE INDEX "document_incident_idx" ON "document" USING btree ("incident_id","id");

CREATE INDEX "document_resource_type_idx" ON "document" USING btree ("resource_type","id");

CREATE INDEX "document_name_idx" ON "document" USING btree ("name","id");

CREATE INDEX "document_weblink_idx" ON "document" USING hash ("weblink");

CREATE INDEX "document_search_block_idx" ON "document" USING gin ("search",(array["id" >> 12]));

CREATE INDEX "document_term_due_idx" ON "document" USING btree ("id") WHERE plugin_slug is not null and (term_content_hash is null or term_content_hash <> content_hash);

CREATE INDEX "document_incident_priority_priority_idx" ON "document_incident_priority" USING btree ("incident_priority_id","document_id");

CREATE INDEX "document_incident_type_type_idx" ON "document_incident_type" USING btree ("incident_type_id","document_id");

CREATE INDEX "document_term_term_idx" ON "document_term" USING btree ("term_id","document_id");

CREATE INDEX "event_incident_idx" ON "event" USING btree ("incident_id","at","id");

CREATE INDEX "event_search_block_idx" ON "event" USING gin ("search",(array["id" >> 12])) WHERE kind = 'note';

CREATE INDEX "flow_step_due_idx" ON "flow_step" USING btree ("due_at") WHERE state <> 'Done';

CREATE INDEX "idempotency_key_expires_at_idx" ON "idempotency_key" USING btree ("expires_at");

CREATE UNIQUE INDEX "incident_name_idx" ON "incident" USING btree ("name");

CREATE INDEX "incident_reported_idx" ON "incident" USING btree ("reported_at","id");

CREATE INDEX "incident_status_idx" ON "incident" USING btree ("status","reported_at","id");

CREATE INDEX "incident_visibility_idx" ON "incident" USING btree ("visibility","reported_at","id");

CREATE INDEX "incident_type_idx" ON "incident" USING btree ("incident_type_id","reported_at","id");

CREATE INDEX "incident_priority_idx" ON "incident" USING btree ("incident_priority_id","reported_at","id");

CREATE INDEX "incident_stable_at_idx" ON "incident" USING btree ("stable_at") WHERE stable_at is not null;

CREATE INDEX "incident_closed_at_idx" ON "incident" USING btree ("closed_at") WHERE closed_at is not null;

CREATE INDEX "incident_cost_due_idx" ON "incident" USING btree ("id") WHERE status = 'Active' or costed_basis <> cost_basis;

CREATE INDEX "incident_search_block_idx" ON "incident" USING gin ("search",(array["id" >> 12]));

CREATE INDEX "incident_application_application_idx" ON "incident_application" USING btree ("application_id","incident_id");

CREATE INDEX "incident_cost_incident_idx" ON "incident_cost" USING btree ("incident_id","computed_at","id");

CREATE INDEX "incident_cost_formula_idx" ON "incident_cost" USING btree ("formula_version");

CREATE UNIQUE INDEX "incident_link_pair_idx" ON "incident_link" USING btree (least("incident_id", "linked_id"),greatest("incident_id", "linked_id"));

CREATE INDEX "incident_link_incident_idx" ON "incident_link" USING btree ("incident_id","id");

CREATE INDEX "incident_link_linked_idx" ON "incident_link" USING btree ("linked_id","id");

CREATE UNIQUE INDEX "incident_priority_name_idx" ON "incident_priority" USING btree ("name");

CREATE INDEX "incident_service_service_idx" ON "incident_service" USING btree ("service_id","incident_id");

CREATE UNIQUE INDEX "incident_type_name_idx" ON "incident_type" USING btree ("name");

CREATE INDEX "incident_type_commander_service_idx" ON "incident_type" USING btree ("commander_service_id");

CREATE INDEX "incident_type_search_idx" ON "incident_type" USING gin ("search");

CREATE INDEX "incident_type_template_document_idx" ON "incident_type_template" USING btree ("document_id");

CREATE UNIQUE INDEX "individual_email_idx" ON "individual" USING btree ("email");

CREATE INDEX "individual_name_idx" ON "individual" USING btree ("name","id");

CREATE INDEX "individual_search_idx" ON "individual" USING gin ("search");

CREATE INDEX "individual_incident_priority_priority_idx" ON "individual_incident_priority" USING btree ("incident_priority_id");

CREATE INDEX "individual_incident_type_type_idx" ON "individual_incident_type" USING btree ("incident_type_id");

CREATE INDEX "individual_term_term_idx" ON "individual_term" USING btree ("term_id");

CREATE UNIQUE INDEX "participant_active_idx" ON "participant" USING btree ("incident_id","individual_id") WHERE left_at is null;

CREATE INDEX "participant_incident_idx" ON "participant" USING btree ("incident_id","id");

CREATE INDEX "participant_individual_idx" ON "participant" USING btree ("individual_id","incident_id");

CREATE INDEX "participant_individual_active_idx" ON "participant" USING btree ("individual_id","incident_id") WHERE left_at is null;

CREATE UNIQUE INDEX "participant_group_incident_idx" ON "participant_group" USING btree ("incident_id","plugin_slug");

CREATE UNIQUE INDEX "participant_group_external_id_idx" ON "participant_group" USING btree ("plugin_slug","external_id");

CREATE UNIQUE INDEX "participant_group_member_individual_once_idx" ON "participant_group_member" USING btree ("participant_group_id","individual_id");

CREATE UNIQUE INDEX "participant_group_member_team_once_idx" ON "participant_group_member" USING btree ("participant_group_id","team_id");

CREATE INDEX "participant_group_member_individual_idx" ON "participant_group_member" USING btree ("individual_id");

CREATE INDEX "participant_group_member_team_idx" ON "participant_group_member" USING btree ("team_id");

CREATE UNIQUE INDEX "participant_role_one_commander_idx" ON "participant_role" USING btree ("incident_id") WHERE role = 'commander' and renounced_at is null;

CREATE UNIQUE INDEX "participant_role_open_idx" ON "participant_role" USING btree ("participant_id","role") WHERE renounced_at is null;

CREATE INDEX "participant_role_participant_idx" ON "participant_role" USING btree ("participant_id","incident_id");

CREATE INDEX "participant_role_incident_idx" ON "participant_role" USING btree ("incident_id");

CREATE UNIQUE INDEX "recommendation_document_once_idx" ON "recommendation" USING btree ("incident_id","document_id","plugin_slug");

CREATE UNIQUE INDEX "recommendation_individual_once_idx" ON "recommendation" USING btree ("incident_id","individual_id","plugin_slug");

CREATE UNIQUE INDEX "recommendation_team_once_idx" ON "recommendation" USING btree ("incident_id","team_id","plugin_slug");

CREATE INDEX "recommendation_document_idx" ON "recommendation" USING btree ("document_id");

CREATE INDEX "recommendation_individual_idx" ON "recommendation" USING btree ("individual_id");

CREATE INDEX "recommendation_team_idx" ON "recommendation" USING btree ("team_id");

CREATE INDEX "rotation_member_individual_idx" ON "rotation_member" USING btree ("individual_id");

CREATE UNIQUE INDEX "run_one_running_idx" ON "run" USING btree ("task") WHERE state = 'Running';

CREATE INDEX "run_failed_idx" ON "run" USING btree ("task","finished_at") WHERE state in ('Failed', 'Missed');

CREATE UNIQUE INDEX "service_name_idx" ON "service" USING btree ("name");

CREATE UNIQUE INDEX "service_external_id_idx" ON "service" USING btree ("plugin_slug","external_id");

CREATE INDEX "service_search_idx" ON "service" USING gin ("search");

CREATE INDEX "session_expires_at_idx" ON "session" USING btree ("expires_at");

CREATE INDEX "sign_in_session_hash_idx" ON "sign_in" USING btree ("session_hash");

CREATE INDEX "sign_in_expires_at_idx" ON "sign_in" USING btree ("expires_at");

CREATE INDEX "status_report_incident_idx" ON "status_report" USING btree ("incident_id","created_at","id");

CREATE INDEX "status_report_author_idx" ON "status_report" USING btree ("author_id");

CREATE INDEX "status_report_search_block_idx" ON "status_report" USING gin ("search",(array["id" >> 12]));

CREATE UNIQUE INDEX "task_external_id_idx" ON "task" USING btree ("document_id","external_id");

CREATE INDEX "task_resolve_by_idx" ON "task" USING btree ("resolve_by","id");

CREATE INDEX "task_incident_idx" ON "task" USING btree ("incident_id","resolve_by","id");

CREATE INDEX "task_status_idx" ON "task" USING btree ("status","resolve_by","id");

CREATE INDEX "task_owner_idx" ON "task" USING btree ("owner_id","resolve_by","id");

CREATE INDEX "task_creator_idx" ON "task" USING btree ("creator_id","resolve_by","id");

CREATE INDEX "task_reminder_due_idx" ON "task" USING btree ("resolve_by","id") WHERE status = 'Open' and reminders and deleted_at is null;

CREATE INDEX "task_search_block_idx" ON "task" USING gin ("search",(array["id" >> 12]));

CREATE INDEX "task_assignee_individual_idx" ON "task_assignee" USING btree ("individual_id","task_id");

CREATE UNIQUE INDEX "team_name_idx" ON "team" USING btree ("name");

CREATE INDEX "team_search_idx" ON "team" USING gin ("search");

CREATE INDEX "team_incident_priority_priority_idx" ON "team_incident_priority" USING btree ("incident_priority_id");

CREATE INDEX "team_incident_type_type_idx" ON "team_incident_type" USING btree ("incident_type_id");

CREATE INDEX "team_term_term_idx" ON "team_term" USING btree ("term_id");

CREATE UNIQUE INDEX "term_external_id_idx" ON "term" USING btree ("source","external_id");

CREATE UNIQUE INDEX "term_own_text_idx" ON "term" USING btree ("text") WHERE source is null and deleted_at is null;

CREATE INDEX "term_text_idx" ON "term" USING btree ("text","id");

CREATE INDEX "term_search_idx" ON "term" USING gin ("search");

CREATE INDEX "token_certificate_idx" ON "token" USING btree ("certificate_sha256") WHERE certificate_sha256 is not null;

CREATE INDEX "token_expires_at_idx" ON "token" USING btree ("expires_at");

CREATE INDEX "token_user_idx" ON "token" USING btree ("user_name","issued_at");

ALTER TABLE "access_lease" ADD CONSTRAINT "access_lease_role_id_access_role_id_fk" FOREIGN KEY ("role_id") REFERENCES "public"."access_role"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "access_lease" ADD CONSTRAINT "access_lease_request_id_access_request_id_fk" FOREIGN KEY ("request_id") REFERENCES "public"."access_request"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "access_lease" ADD CONSTRAINT "access_lease_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE set null ON UPDATE no action;

ALTER TABLE "access_request" ADD CONSTRAINT "access_request_role_id_access_role_id_fk" FOREIGN KEY ("role_id") REFERENCES "public"."access_role"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "access_request" ADD CONSTRAINT "access_request_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE set null ON UPDATE no action;

ALTER TABLE "challenge" ADD CONSTRAINT "challenge_session_hash_session_id_hash_fk" FOREIGN KEY ("session_hash") REFERENCES "public"."session"("id_hash") ON DELETE set null ON UPDATE cascade;

ALTER TABLE "client_certificate" ADD CONSTRAINT "client_certificate_jti_token_jti_fk" FOREIGN KEY ("jti") REFERENCES "public"."token"("jti") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "client_certificate" ADD CONSTRAINT "client_certificate_authority_key_id_authority_key_id_fk" FOREIGN KEY ("authority_key_id") REFERENCES "public"."authority_key"("id") ON DELETE no action ON UPDATE no action;

ALTER TABLE "conversation" ADD CONSTRAINT "conversation_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "conversation_message" ADD CONSTRAINT "conversation_message_conversation_id_conversation_id_fk" FOREIGN KEY ("conversation_id") REFERENCES "public"."conversation"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "conversation_message" ADD CONSTRAINT "conversation_message_author_id_individual_id_fk" FOREIGN KEY ("author_id") REFERENCES "public"."individual"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "conversation_message" ADD CONSTRAINT "conversation_message_recipient_id_individual_id_fk" FOREIGN KEY ("recipient_id") REFERENCES "public"."individual"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "cost_formula_role" ADD CONSTRAINT "cost_formula_role_formula_version_cost_formula_version_fk" FOREIGN KEY ("formula_version") REFERENCES "public"."cost_formula"("version") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "definition_term" ADD CONSTRAINT "definition_term_definition_id_definition_id_fk" FOREIGN KEY ("definition_id") REFERENCES "public"."definition"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "definition_term" ADD CONSTRAINT "definition_term_term_id_term_id_fk" FOREIGN KEY ("term_id") REFERENCES "public"."term"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "delivery" ADD CONSTRAINT "delivery_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "delivery" ADD CONSTRAINT "delivery_individual_id_individual_id_fk" FOREIGN KEY ("individual_id") REFERENCES "public"."individual"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "document" ADD CONSTRAINT "document_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "document_content" ADD CONSTRAINT "document_content_document_id_document_id_fk" FOREIGN KEY ("document_id") REFERENCES "public"."document"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "document_incident_priority" ADD CONSTRAINT "document_incident_priority_document_id_document_id_fk" FOREIGN KEY ("document_id") REFERENCES "public"."document"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "document_incident_priority" ADD CONSTRAINT "document_incident_priority_priority_fk" FOREIGN KEY ("incident_priority_id") REFERENCES "public"."incident_priority"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "document_incident_type" ADD CONSTRAINT "document_incident_type_document_id_document_id_fk" FOREIGN KEY ("document_id") REFERENCES "public"."document"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "document_incident_type" ADD CONSTRAINT "document_incident_type_type_fk" FOREIGN KEY ("incident_type_id") REFERENCES "public"."incident_type"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "document_term" ADD CONSTRAINT "document_term_document_id_document_id_fk" FOREIGN KEY ("document_id") REFERENCES "public"."document"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "document_term" ADD CONSTRAINT "document_term_term_id_term_id_fk" FOREIGN KEY ("term_id") REFERENCES "public"."term"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "event" ADD CONSTRAINT "event_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "flow_step" ADD CONSTRAINT "flow_step_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "incident" ADD CONSTRAINT "incident_incident_type_id_incident_type_id_fk" FOREIGN KEY ("incident_type_id") REFERENCES "public"."incident_type"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "incident" ADD CONSTRAINT "incident_incident_priority_id_incident_priority_id_fk" FOREIGN KEY ("incident_priority_id") REFERENCES "public"."incident_priority"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "incident_application" ADD CONSTRAINT "incident_application_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "incident_application" ADD CONSTRAINT "incident_application_application_id_application_id_fk" FOREIGN KEY ("application_id") REFERENCES "public"."application"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "incident_cost" ADD CONSTRAINT "incident_cost_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "incident_cost" ADD CONSTRAINT "incident_cost_formula_fk" FOREIGN KEY ("formula_version") REFERENCES "public"."cost_formula"("version") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "incident_link" ADD CONSTRAINT "incident_link_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "incident_link" ADD CONSTRAINT "incident_link_linked_id_incident_id_fk" FOREIGN KEY ("linked_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "incident_service" ADD CONSTRAINT "incident_service_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "incident_service" ADD CONSTRAINT "incident_service_service_id_service_id_fk" FOREIGN KEY ("service_id") REFERENCES "public"."service"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "incident_type" ADD CONSTRAINT "incident_type_commander_service_id_service_id_fk" FOREIGN KEY ("commander_service_id") REFERENCES "public"."service"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "incident_type_template" ADD CONSTRAINT "incident_type_template_document_id_document_id_fk" FOREIGN KEY ("document_id") REFERENCES "public"."document"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "incident_type_template" ADD CONSTRAINT "incident_type_template_type_fk" FOREIGN KEY ("incident_type_id") REFERENCES "public"."incident_type"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "individual_incident_priority" ADD CONSTRAINT "individual_incident_priority_individual_id_individual_id_fk" FOREIGN KEY ("individual_id") REFERENCES "public"."individual"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "individual_incident_priority" ADD CONSTRAINT "individual_incident_priority_priority_fk" FOREIGN KEY ("incident_priority_id") REFERENCES "public"."incident_priority"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "individual_incident_type" ADD CONSTRAINT "individual_incident_type_individual_id_individual_id_fk" FOREIGN KEY ("individual_id") REFERENCES "public"."individual"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "individual_incident_type" ADD CONSTRAINT "individual_incident_type_type_fk" FOREIGN KEY ("incident_type_id") REFERENCES "public"."incident_type"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "individual_term" ADD CONSTRAINT "individual_term_individual_id_individual_id_fk" FOREIGN KEY ("individual_id") REFERENCES "public"."individual"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "individual_term" ADD CONSTRAINT "individual_term_term_id_term_id_fk" FOREIGN KEY ("term_id") REFERENCES "public"."term"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "participant" ADD CONSTRAINT "participant_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "participant" ADD CONSTRAINT "participant_individual_id_individual_id_fk" FOREIGN KEY ("individual_id") REFERENCES "public"."individual"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "participant_group" ADD CONSTRAINT "participant_group_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "participant_group_member" ADD CONSTRAINT "participant_group_member_individual_id_individual_id_fk" FOREIGN KEY ("individual_id") REFERENCES "public"."individual"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "participant_group_member" ADD CONSTRAINT "participant_group_member_team_id_team_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."team"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "participant_group_member" ADD CONSTRAINT "participant_group_member_group_fk" FOREIGN KEY ("participant_group_id") REFERENCES "public"."participant_group"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "participant_role" ADD CONSTRAINT "participant_role_participant_fk" FOREIGN KEY ("participant_id","incident_id") REFERENCES "public"."participant"("id","incident_id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "recommendation" ADD CONSTRAINT "recommendation_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "recommendation" ADD CONSTRAINT "recommendation_document_id_document_id_fk" FOREIGN KEY ("document_id") REFERENCES "public"."document"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "recommendation" ADD CONSTRAINT "recommendation_individual_id_individual_id_fk" FOREIGN KEY ("individual_id") REFERENCES "public"."individual"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "recommendation" ADD CONSTRAINT "recommendation_team_id_team_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."team"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "rotation" ADD CONSTRAINT "rotation_service_id_service_id_fk" FOREIGN KEY ("service_id") REFERENCES "public"."service"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "rotation_member" ADD CONSTRAINT "rotation_member_service_id_rotation_service_id_fk" FOREIGN KEY ("service_id") REFERENCES "public"."rotation"("service_id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "rotation_member" ADD CONSTRAINT "rotation_member_individual_id_individual_id_fk" FOREIGN KEY ("individual_id") REFERENCES "public"."individual"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "run_fault" ADD CONSTRAINT "run_fault_run_fk" FOREIGN KEY ("task","slot") REFERENCES "public"."run"("task","slot") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "sign_in" ADD CONSTRAINT "sign_in_session_hash_session_id_hash_fk" FOREIGN KEY ("session_hash") REFERENCES "public"."session"("id_hash") ON DELETE cascade ON UPDATE cascade;

ALTER TABLE "status_report" ADD CONSTRAINT "status_report_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "status_report" ADD CONSTRAINT "status_report_author_id_individual_id_fk" FOREIGN KEY ("author_id") REFERENCES "public"."individual"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "status_report_reminder" ADD CONSTRAINT "status_report_reminder_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "task" ADD CONSTRAINT "task_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "task" ADD CONSTRAINT "task_creator_id_individual_id_fk" FOREIGN KEY ("creator_id") REFERENCES "public"."individual"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "task" ADD CONSTRAINT "task_owner_id_individual_id_fk" FOREIGN KEY ("owner_id") REFERENCES "public"."individual"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "task" ADD CONSTRAINT "task_document_id_document_id_fk" FOREIGN KEY ("document_id") REFERENCES "public"."document"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "task_assignee" ADD CONSTRAINT "task_assignee_task_id_task_id_fk" FOREIGN KEY ("task_id") REFERENCES "public"."task"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "task_assignee" ADD CONSTRAINT "task_assignee_individual_id_individual_id_fk" FOREIGN KEY ("individual_id") REFERENCES "public"."individual"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "team_incident_priority" ADD CONSTRAINT "team_incident_priority_team_id_team_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."team"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "team_incident_priority" ADD CONSTRAINT "team_incident_priority_priority_fk" FOREIGN KEY ("incident_priority_id") REFERENCES "public"."incident_priority"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "team_incident_type" ADD CONSTRAINT "team_incident_type_team_id_team_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."team"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "team_incident_type" ADD CONSTRAINT "team_incident_type_type_fk" FOREIGN KEY ("incident_type_id") REFERENCES "public"."incident_type"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "team_term" ADD CONSTRAINT "team_term_team_id_team_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."team"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "team_term" ADD CONSTRAINT "team_term_term_id_term_id_fk" FOREIGN KEY ("term_id") REFERENCES "public"."term"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "token" ADD CONSTRAINT "token_challenge_id_challenge_id_fk" FOREIGN KEY ("challenge_id") REFERENCES "public"."challenge"("id") ON DELETE set null ON UPDATE no action;
