-- token certificate
-- Revision 20261125T1302_token_certificate, after 20261125T0200_initial

ALTER TABLE "token" ADD COLUMN "certificate_sha256" text;

CREATE INDEX "token_certificate_idx" ON "token" USING btree ("certificate_sha256") WHERE certificate_sha256 is not null;
