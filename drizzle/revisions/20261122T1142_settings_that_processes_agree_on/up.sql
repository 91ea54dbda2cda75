-- settings that processes agree on
-- Revision 20261122T1142_settings_that_processes_agree_on, after 20261122T1129_who_is_listed

CREATE TABLE "setting" (
  "name" text PRIMARY KEY NOT NULL,
  "value" text,
  "recorded_by" text NOT NULL,
  "recorded_at" timestamp with time zone NOT NULL
);
