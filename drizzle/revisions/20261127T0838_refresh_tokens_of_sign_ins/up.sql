-- refresh tokens of sign-ins
-- Revision 20261127T0838_refresh_tokens_of_sign_ins, after 20261127T0825_corrections_of_events

ALTER TABLE "issuer_session" ADD COLUMN "refresh_token" bytea;

ALTER TABLE "issuer_session" ADD COLUMN "refreshed_at" timestamp with time zone;

ALTER TABLE "issuer_session" ADD COLUMN "refresh_until" timestamp with time zone;
