-- sign-ins at the issuer
-- Revision 20261127T0819_sign_ins_at_the_issuer, after 20261127T0813_versions_of_documents

CREATE TABLE "issuer_session" (
  "id" uuid PRIMARY KEY NOT NULL,
  "user_name" text NOT NULL,
  "issuer" text NOT NULL,
  "subject" text NOT NULL,
  "sid" text,
  "created_at" timestamp with time zone NOT NULL,
  "ended_at" timestamp with time zone
);

ALTER TABLE "challenge" ADD COLUMN "issuer_session_id" uuid;

ALTER TABLE "session" ADD COLUMN "issuer_session_id" uuid;

ALTER TABLE "token" ADD COLUMN "issuer_session_id" uuid;

CREATE INDEX "challenge_issuer_session_idx" ON "challenge" USING btree ("issuer_session_id");

CREATE INDEX "session_issuer_session_idx" ON "session" USING btree ("issuer_session_id");

CREATE INDEX "token_issuer_session_idx" ON "token" USING btree ("issuer_session_id");

CREATE INDEX "issuer_session_subject_idx" ON "issuer_session" USING btree ("subject","issuer");

CREATE INDEX "issuer_session_sid_idx" ON "issuer_session" USING btree ("sid");

ALTER TABLE "challenge" ADD CONSTRAINT "challenge_issuer_session_id_issuer_session_id_fk" FOREIGN KEY ("issuer_session_id") REFERENCES "public"."issuer_session"("id") ON DELETE set null ON UPDATE no action;

ALTER TABLE "session" ADD CONSTRAINT "session_issuer_session_id_issuer_session_id_fk" FOREIGN KEY ("issuer_session_id") REFERENCES "public"."issuer_session"("id") ON DELETE set null ON UPDATE no action;

ALTER TABLE "token" ADD CONSTRAINT "token_issuer_session_id_issuer_session_id_fk" FOREIGN KEY ("issuer_session_id") REFERENCES "public"."issuer_session"("id") ON DELETE set null ON UPDATE no action;
