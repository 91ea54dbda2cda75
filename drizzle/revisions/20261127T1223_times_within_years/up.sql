-- times within years
-- Revision 20261127T1223_times_within_years, after 20261127T0838_refresh_tokens_of_sign_ins
-- Only a row written by hand in SQL can break these: svc refuses such times. The upgrade fails until it is corrected.

ALTER TABLE "incident" ADD CONSTRAINT "incident_times" CHECK (extract(year from reported_at at time zone 'UTC') >= 100 and extract(year from reported_at at time zone 'UTC') <= 9999 and extract(year from stable_at at time zone 'UTC') >= 100 and extract(year from stable_at at time zone 'UTC') <= 9999 and extract(year from closed_at at time zone 'UTC') >= 100 and extract(year from closed_at at time zone 'UTC') <= 9999);

ALTER TABLE "participant_role" ADD CONSTRAINT "participant_role_times" CHECK (extract(year from assumed_at at time zone 'UTC') >= 100 and extract(year from assumed_at at time zone 'UTC') <= 9999 and extract(year from renounced_at at time zone 'UTC') >= 100 and extract(year from renounced_at at time zone 'UTC') <= 9999);

ALTER TABLE "rotation" ADD CONSTRAINT "rotation_times" CHECK (extract(year from starts_at at time zone 'UTC') >= 100 and extract(year from starts_at at time zone 'UTC') <= 9999);

ALTER TABLE "status_report" ADD CONSTRAINT "status_report_times" CHECK (extract(year from created_at at time zone 'UTC') >= 100 and extract(year from created_at at time zone 'UTC') <= 9999);

ALTER TABLE "status_report_reminder" ADD CONSTRAINT "status_report_reminder_times" CHECK (extract(year from reminded_at at time zone 'UTC') >= 100 and extract(year from reminded_at at time zone 'UTC') <= 9999);

ALTER TABLE "task" ADD CONSTRAINT "task_times" CHECK (extract(year from resolve_by at time zone 'UTC') >= 100 and extract(year from resolve_by at time zone 'UTC') <= 9999 and extract(year from last_reminder_at at time zone 'UTC') >= 100 and extract(year from last_reminder_at at time zone 'UTC') <= 9999);
