-- index of commanders
-- Revision 20261128T0104_index_of_commanders, after 20261128T0036_incident_types_that_are_due_a_post_morte

CREATE INDEX "participant_role_commander_idx" ON "participant_role" USING btree ("incident_id","assumed_at") WHERE role = 'commander';
