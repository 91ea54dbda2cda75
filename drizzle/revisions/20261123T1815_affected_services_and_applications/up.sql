-- affected services and applications
-- Revision 20261123T1815_affected_services_and_applications, after 20261123T1810_incident_links

CREATE TABLE "incident_application" (
  "incident_id" bigint NOT NULL,
  "application_id" bigint NOT NULL,
  CONSTRAINT "incident_application_pk" PRIMARY KEY("incident_id","application_id")
);

CREATE TABLE "incident_service" (
  "incident_id" bigint NOT NULL,
  "service_id" bigint NOT NULL,
  CONSTRAINT "incident_service_pk" PRIMARY KEY("incident_id","service_id")
);

CREATE INDEX "incident_application_application_idx" ON "incident_application" USING btree ("application_id","incident_id");

CREATE INDEX "incident_service_service_idx" ON "incident_service" USING btree ("service_id","incident_id");

ALTER TABLE "incident_application" ADD CONSTRAINT "incident_application_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "incident_application" ADD CONSTRAINT "incident_application_application_id_application_id_fk" FOREIGN KEY ("application_id") REFERENCES "public"."application"("id") ON DELETE restrict ON UPDATE no action;

ALTER TABLE "incident_service" ADD CONSTRAINT "incident_service_incident_id_incident_id_fk" FOREIGN KEY ("incident_id") REFERENCES "public"."incident"("id") ON DELETE cascade ON UPDATE no action;

ALTER TABLE "incident_service" ADD CONSTRAINT "incident_service_service_id_service_id_fk" FOREIGN KEY ("service_id") REFERENCES "public"."service"("id") ON DELETE restrict ON UPDATE no action;
