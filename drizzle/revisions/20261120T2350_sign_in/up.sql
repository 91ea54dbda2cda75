-- sign in
-- Revision 20261120T2350_sign_in, the first

CREATE TABLE "audit_log" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "audit_log_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "at" timestamp with time zone NOT NULL,
  "actor" text NOT NULL,
  "action" text NOT NULL,
  "address" text,
  "subject" text,
  "data" jsonb DEFAULT '{}'::jsonb NOT NULL
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

CREATE TABLE "session" (
  "id_hash" bytea PRIMARY KEY NOT NULL,
  "user_name" text,
  "groups" text[] DEFAULT '{}' NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "expires_at" timestamp with time zone NOT NULL,
  "signed_in_at" timestamp with time zone
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

CREATE TABLE "token" (
  "jti" uuid PRIMARY KEY NOT NULL,
  "challenge_id" uuid,
  "user_name" text NOT NULL,
  "groups" text[] DEFAULT '{}' NOT NULL,
  "issued_at" timestamp with time zone NOT NULL,
  "expires_at" timestamp with time zone NOT NULL,
  "revoked_at" timestamp with time zone,
  CONSTRAINT "token_challenge_id_unique" UNIQUE("challenge_id")
);

CREATE INDEX "audit_log_at_idx" ON "audit_log" USING btree ("at");

CREATE INDEX "audit_log_subject_idx" ON "audit_log" USING btree ("subject");

CREATE INDEX "challenge_expires_at_idx" ON "challenge" USING btree ("expires_at");

CREATE INDEX "challenge_session_hash_idx" ON "challenge" USING btree ("session_hash");

CREATE INDEX "session_expires_at_idx" ON "session" USING btree ("expires_at");

CREATE INDEX "sign_in_session_hash_idx" ON "sign_in" USING btree ("session_hash");

CREATE INDEX "sign_in_expires_at_idx" ON "sign_in" USING btree ("expires_at");

CREATE INDEX "token_expires_at_idx" ON "token" USING btree ("expires_at");

ALTER TABLE "challenge" ADD CONSTRAINT "challenge_session_hash_session_id_hash_fk" FOREIGN KEY ("session_hash") REFERENCES "public"."session"("id_hash") ON DELETE set null ON UPDATE cascade;

ALTER TABLE "sign_in" ADD CONSTRAINT "sign_in_session_hash_session_id_hash_fk" FOREIGN KEY ("session_hash") REFERENCES "public"."session"("id_hash") ON DELETE cascade ON UPDATE cascade;

ALTER TABLE "token" ADD CONSTRAINT "token_challenge_id_challenge_id_fk" FOREIGN KEY ("challenge_id") REFERENCES "public"."challenge"("id") ON DELETE set null ON UPDATE no action;
