-- Reverts: incident types that are due a post-mortem

-- svc: data-loss column incident_type.postmortem
ALTER TABLE "incident_type" DROP COLUMN "postmortem";
