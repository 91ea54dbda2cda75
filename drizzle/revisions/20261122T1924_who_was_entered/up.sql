-- who was entered
-- Revision 20261122T1924_who_was_entered, after 20261122T1142_settings_that_processes_agree_on

-- Who came about with a part in an incident was not entered by anybody: both have the same time. Being called for
-- incidents lists them all the same.
UPDATE "individual" SET "listed" = false
WHERE (
  EXISTS (SELECT FROM "participant" WHERE "individual_id" = "individual"."id" AND "joined_at" = "individual"."created_at")
  OR EXISTS (SELECT FROM "status_report" WHERE "author_id" = "individual"."id" AND "created_at" = "individual"."created_at")
  OR EXISTS (SELECT FROM "conversation_message" WHERE "author_id" = "individual"."id" AND "at" = "individual"."created_at")
  OR EXISTS (SELECT FROM "task" WHERE "owner_id" = "individual"."id" AND "created_at" = "individual"."created_at")
  OR EXISTS (SELECT FROM "task" WHERE "creator_id" = "individual"."id" AND "created_at" = "individual"."created_at")
  OR EXISTS (
    SELECT FROM "task_assignee" JOIN "task" ON "task"."id" = "task_id"
    WHERE "individual_id" = "individual"."id" AND "task"."created_at" = "individual"."created_at"
  )
)
  AND NOT EXISTS (SELECT FROM "individual_incident_type" WHERE "individual_id" = "individual"."id")
  AND NOT EXISTS (SELECT FROM "individual_incident_priority" WHERE "individual_id" = "individual"."id")
  AND NOT EXISTS (SELECT FROM "individual_term" WHERE "individual_id" = "individual"."id");
