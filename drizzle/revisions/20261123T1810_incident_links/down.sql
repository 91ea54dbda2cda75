-- Reverts: incident links

-- svc: data-loss table incident_link
DROP TABLE "incident_link";
