-- Loses data: every session, token, signing key and the audit log.
DROP TABLE "token";
DROP TABLE "challenge";
DROP TABLE "sign_in";
DROP TABLE "session";
DROP TABLE "signing_key";
DROP TABLE "audit_log";
