-- authority keys
-- Revision 20261123T0554_authority_keys, after 20261123T0325_access_requests

CREATE TABLE "authority_key" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "authority_key_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "kind" text NOT NULL,
  "name" text NOT NULL,
  "public" text NOT NULL,
  "private_key" bytea NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  "active_at" timestamp with time zone NOT NULL,
  "expires_at" timestamp with time zone,
  "revoked_at" timestamp with time zone,
  CONSTRAINT "authority_key_kind_known" CHECK (kind in ('ssh', 'x509')),
  CONSTRAINT "authority_key_revoked" CHECK (revoked_at is null or expires_at is not null)
);

CREATE INDEX "access_lease_handle_idx" ON "access_lease" USING btree ("expires_at") WHERE handle is not null;

CREATE INDEX "authority_key_name_idx" ON "authority_key" USING btree ("kind","name");
