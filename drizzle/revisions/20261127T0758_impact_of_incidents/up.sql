-- impact of incidents
-- Revision 20261127T0758_impact_of_incidents, after 20261127T0452_order_of_messages_and_obsolete_reminders

ALTER TABLE "incident" ADD COLUMN "impact_started_at" timestamp with time zone;

ALTER TABLE "incident" ADD COLUMN "impact_ended_at" timestamp with time zone;
