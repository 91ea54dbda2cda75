-- Reverts: refresh tokens of sign-ins

-- svc: data-loss column issuer_session.refresh_token
ALTER TABLE "issuer_session" DROP COLUMN "refresh_token";

-- svc: data-loss column issuer_session.refreshed_at
ALTER TABLE "issuer_session" DROP COLUMN "refreshed_at";

-- svc: data-loss column issuer_session.refresh_until
ALTER TABLE "issuer_session" DROP COLUMN "refresh_until";
