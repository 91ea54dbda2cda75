-- incident types that are due a post-mortem
-- Revision 20261128T0036_incident_types_that_are_due_a_post_morte, after 20261127T2354_time_zones_of_people

ALTER TABLE "incident_type" ADD COLUMN "postmortem" boolean DEFAULT false NOT NULL;
