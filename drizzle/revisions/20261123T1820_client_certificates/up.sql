-- client certificates
-- Revision 20261123T1820_client_certificates, after 20261123T1815_affected_services_and_applications

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

CREATE INDEX "client_certificate_jti_idx" ON "client_certificate" USING btree ("jti");

CREATE INDEX "client_certificate_key_idx" ON "client_certificate" USING btree ("authority_key_id");

CREATE INDEX "client_certificate_created_at_idx" ON "client_certificate" USING btree ("created_at","id");

CREATE INDEX "client_certificate_expires_at_idx" ON "client_certificate" USING btree ("expires_at");

ALTER TABLE "client_certificate" ADD CONSTRAINT "client_certificate_jti_token_jti_fk" FOREIGN KEY ("jti") REFERENCES "public"."token"("jti") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "client_certificate" ADD CONSTRAINT "client_certificate_authority_key_id_authority_key_id_fk" FOREIGN KEY ("authority_key_id") REFERENCES "public"."authority_key"("id") ON DELETE no action ON UPDATE no action;
