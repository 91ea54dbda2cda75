-- Reverts: token certificate

DROP INDEX "token_certificate_idx";

-- svc: data-loss column token.certificate_sha256
ALTER TABLE "token" DROP COLUMN "certificate_sha256";
