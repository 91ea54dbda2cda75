-- incident links
-- Revision 20261123T1810_incident_links, after 20261123T1803_search_notes_reports_and_messages

CREATE TABLE "incident_link" (
  "id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "incident_link_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
  "incident_id" bigint NOT NULL,
  "linked_id" bigint NOT NULL,
  "kind" text NOT NULL,
  "created_at" timestamp with time zone NOT NULL,
  CONSTRAINT "incident_link_kind_known" CHECK (kind in ('related', 'duplicate')),
  CONSTRAINT "incident_link_of_two" CHECK (incident_id <> linked_id)
);

CREATE UNIQUE INDEX "incident_link_pair_idx" ON "incident_link" USING btree (least("incident_id", "linked_id"),greatest("incident_id", "linked_id"));

CREATE INDEX "incident_link_incident_idx" ON "incident_link" USING btree ("incident_id","id");

CREATE INDEX "incident_link_linked_idx" ON "incident_link" USING btree ("linked_id","id");

ALTER TABLE "incident_link" ADD CONSTRAINT "incident_link_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "incident_link" ADD CONSTRAINT "incident_link_linked_id_incident_id_fk" FOREIGN KEY ("linked_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;
