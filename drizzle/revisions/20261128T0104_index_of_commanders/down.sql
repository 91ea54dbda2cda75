-- Reverts: index of commanders

DROP INDEX "participant_role_commander_idx";
