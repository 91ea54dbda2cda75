-- Takes back: sign in

ALTER TABLE "challenge" DROP CONSTRAINT "challenge_session_hash_session_id_hash_fk";

ALTER TABLE "sign_in" DROP CONSTRAINT "sign_in_session_hash_session_id_hash_fk";

ALTER TABLE "token" DROP CONSTRAINT "token_challenge_id_challenge_id_fk";

-- svc: data-loss table audit_log
DROP TABLE "audit_log";

-- svc: data-loss table challenge
DROP TABLE "challenge";

-- svc: data-loss table session
DROP TABLE "session";

-- svc: data-loss table sign_in
DROP TABLE "sign_in";

-- svc: data-loss table signing_key
DROP TABLE "signing_key";

-- svc: data-loss table token
DROP TABLE "token";
