-- Reverts: times within years

ALTER TABLE "incident" DROP CONSTRAINT "incident_times";

ALTER TABLE "participant_role" DROP CONSTRAINT "participant_role_times";

ALTER TABLE "rotation" DROP CONSTRAINT "rotation_times";

ALTER TABLE "status_report" DROP CONSTRAINT "status_report_times";

ALTER TABLE "status_report_reminder" DROP CONSTRAINT "status_report_reminder_times";

ALTER TABLE "task" DROP CONSTRAINT "task_times";
