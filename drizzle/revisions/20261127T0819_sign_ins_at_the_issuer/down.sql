-- Reverts: sign-ins at the issuer

ALTER TABLE "challenge" DROP CONSTRAINT "challenge_issuer_session_id_issuer_session_id_fk";

ALTER TABLE "session" DROP CONSTRAINT "session_issuer_session_id_issuer_session_id_fk";

ALTER TABLE "token" DROP CONSTRAINT "token_issuer_session_id_issuer_session_id_fk";

-- svc: data-loss table issuer_session
DROP TABLE "issuer_session";

DROP INDEX "challenge_issuer_session_idx";

DROP INDEX "session_issuer_session_idx";

DROP INDEX "token_issuer_session_idx";

-- svc: data-loss column challenge.issuer_session_id
ALTER TABLE "challenge" DROP COLUMN "issuer_session_id";

-- svc: data-loss column session.issuer_session_id
ALTER TABLE "session" DROP COLUMN "issuer_session_id";

-- svc: data-loss column token.issuer_session_id
ALTER TABLE "token" DROP COLUMN "issuer_session_id";
