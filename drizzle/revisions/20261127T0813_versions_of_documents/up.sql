-- versions of documents
-- Revision 20261127T0813_versions_of_documents, after 20261127T0809_approvals_by_group

CREATE TABLE "document_version" (
  "document_id" bigint NOT NULL,
  "version" integer NOT NULL,
  "content" text,
  "author" text,
  "at" timestamp with time zone NOT NULL,
  CONSTRAINT "document_version_document_id_version_pk" PRIMARY KEY("document_id","version")
);

ALTER TABLE "document_version" ADD CONSTRAINT "document_version_document_id_document_id_fk" FOREIGN KEY ("document_id") REFERENCES "public"."document"("id") ON DELETE cascade ON UPDATE no action;
