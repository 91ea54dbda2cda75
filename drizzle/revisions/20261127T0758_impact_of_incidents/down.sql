-- Reverts: impact of incidents

-- svc: data-loss column incident.impact_started_at
ALTER TABLE "incident" DROP COLUMN "impact_started_at";

-- svc: data-loss column incident.impact_ended_at
ALTER TABLE "incident" DROP COLUMN "impact_ended_at";
