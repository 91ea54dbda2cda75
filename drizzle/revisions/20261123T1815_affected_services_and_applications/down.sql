-- Reverts: affected services and applications

-- svc: data-loss table incident_service
DROP TABLE "incident_service";

-- svc: data-loss table incident_application
DROP TABLE "incident_application";
