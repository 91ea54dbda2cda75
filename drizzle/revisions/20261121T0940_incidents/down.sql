-- Takes back: incidents

ALTER TABLE "conversation" DROP CONSTRAINT "conversation_incident_id_incident_id_fk";

ALTER TABLE "conversation_message" DROP CONSTRAINT "conversation_message_conversation_id_conversation_id_fk";

ALTER TABLE "conversation_message" DROP CONSTRAINT "conversation_message_author_id_individual_id_fk";

ALTER TABLE "conversation_message" DROP CONSTRAINT "conversation_message_recipient_id_individual_id_fk";

ALTER TABLE "cost_formula_role" DROP CONSTRAINT "cost_formula_role_formula_version_cost_formula_version_fk";

ALTER TABLE "definition_term" DROP CONSTRAINT "definition_term_definition_id_definition_id_fk";

ALTER TABLE "definition_term" DROP CONSTRAINT "definition_term_term_id_term_id_fk";

ALTER TABLE "document" DROP CONSTRAINT "document_incident_id_incident_id_fk";

ALTER TABLE "document_content" DROP CONSTRAINT "document_content_document_id_document_id_fk";

ALTER TABLE "document_incident_priority" DROP CONSTRAINT "document_incident_priority_document_id_document_id_fk";

ALTER TABLE "document_incident_priority" DROP CONSTRAINT "document_incident_priority_priority_fk";

ALTER TABLE "document_incident_type" DROP CONSTRAINT "document_incident_type_document_id_document_id_fk";

ALTER TABLE "document_incident_type" DROP CONSTRAINT "document_incident_type_type_fk";

ALTER TABLE "document_term" DROP CONSTRAINT "document_term_document_id_document_id_fk";

ALTER TABLE "document_term" DROP CONSTRAINT "document_term_term_id_term_id_fk";

ALTER TABLE "event" DROP CONSTRAINT "event_incident_id_incident_id_fk";

ALTER TABLE "flow_step" DROP CONSTRAINT "flow_step_incident_id_incident_id_fk";

ALTER TABLE "incident" DROP CONSTRAINT "incident_incident_type_id_incident_type_id_fk";

ALTER TABLE "incident" DROP CONSTRAINT "incident_incident_priority_id_incident_priority_id_fk";

ALTER TABLE "incident_cost" DROP CONSTRAINT "incident_cost_incident_id_incident_id_fk";

ALTER TABLE "incident_cost" DROP CONSTRAINT "incident_cost_formula_fk";

ALTER TABLE "incident_type" DROP CONSTRAINT "incident_type_commander_service_id_service_id_fk";

ALTER TABLE "incident_type_template" DROP CONSTRAINT "incident_type_template_document_id_document_id_fk";

ALTER TABLE "incident_type_template" DROP CONSTRAINT "incident_type_template_type_fk";

ALTER TABLE "individual_incident_priority" DROP CONSTRAINT "individual_incident_priority_individual_id_individual_id_fk";

ALTER TABLE "individual_incident_priority" DROP CONSTRAINT "individual_incident_priority_priority_fk";

ALTER TABLE "individual_incident_type" DROP CONSTRAINT "individual_incident_type_individual_id_individual_id_fk";

ALTER TABLE "individual_incident_type" DROP CONSTRAINT "individual_incident_type_type_fk";

ALTER TABLE "individual_term" DROP CONSTRAINT "individual_term_individual_id_individual_id_fk";

ALTER TABLE "individual_term" DROP CONSTRAINT "individual_term_term_id_term_id_fk";

ALTER TABLE "participant" DROP CONSTRAINT "participant_incident_id_incident_id_fk";

ALTER TABLE "participant" DROP CONSTRAINT "participant_individual_id_individual_id_fk";

ALTER TABLE "participant_group" DROP CONSTRAINT "participant_group_incident_id_incident_id_fk";

ALTER TABLE "participant_group_member" DROP CONSTRAINT "participant_group_member_individual_id_individual_id_fk";

ALTER TABLE "participant_group_member" DROP CONSTRAINT "participant_group_member_team_id_team_id_fk";

ALTER TABLE "participant_group_member" DROP CONSTRAINT "participant_group_member_group_fk";

ALTER TABLE "participant_role" DROP CONSTRAINT "participant_role_participant_fk";

ALTER TABLE "recommendation" DROP CONSTRAINT "recommendation_incident_id_incident_id_fk";

ALTER TABLE "recommendation" DROP CONSTRAINT "recommendation_document_id_document_id_fk";

ALTER TABLE "recommendation" DROP CONSTRAINT "recommendation_individual_id_individual_id_fk";

ALTER TABLE "recommendation" DROP CONSTRAINT "recommendation_team_id_team_id_fk";

ALTER TABLE "rotation" DROP CONSTRAINT "rotation_service_id_service_id_fk";

ALTER TABLE "rotation_member" DROP CONSTRAINT "rotation_member_service_id_rotation_service_id_fk";

ALTER TABLE "rotation_member" DROP CONSTRAINT "rotation_member_individual_id_individual_id_fk";

ALTER TABLE "status_report" DROP CONSTRAINT "status_report_incident_id_incident_id_fk";

ALTER TABLE "status_report" DROP CONSTRAINT "status_report_author_id_individual_id_fk";

ALTER TABLE "status_report_reminder" DROP CONSTRAINT "status_report_reminder_incident_id_incident_id_fk";

ALTER TABLE "task" DROP CONSTRAINT "task_incident_id_incident_id_fk";

ALTER TABLE "task" DROP CONSTRAINT "task_creator_id_individual_id_fk";

ALTER TABLE "task" DROP CONSTRAINT "task_owner_id_individual_id_fk";

ALTER TABLE "task" DROP CONSTRAINT "task_document_id_document_id_fk";

ALTER TABLE "task_assignee" DROP CONSTRAINT "task_assignee_task_id_task_id_fk";

ALTER TABLE "task_assignee" DROP CONSTRAINT "task_assignee_individual_id_individual_id_fk";

ALTER TABLE "team_incident_priority" DROP CONSTRAINT "team_incident_priority_team_id_team_id_fk";

ALTER TABLE "team_incident_priority" DROP CONSTRAINT "team_incident_priority_priority_fk";

ALTER TABLE "team_incident_type" DROP CONSTRAINT "team_incident_type_team_id_team_id_fk";

ALTER TABLE "team_incident_type" DROP CONSTRAINT "team_incident_type_type_fk";

ALTER TABLE "team_term" DROP CONSTRAINT "team_term_team_id_team_id_fk";

ALTER TABLE "team_term" DROP CONSTRAINT "team_term_term_id_term_id_fk";

-- svc: data-loss table application
DROP TABLE "application";

-- svc: data-loss table conversation
DROP TABLE "conversation";

-- svc: data-loss table conversation_message
DROP TABLE "conversation_message";

-- svc: data-loss table cost_formula
DROP TABLE "cost_formula";

-- svc: data-loss table cost_formula_role
DROP TABLE "cost_formula_role";

-- svc: data-loss table definition
DROP TABLE "definition";

-- svc: data-loss table definition_term
DROP TABLE "definition_term";

-- svc: data-loss table document
DROP TABLE "document";

-- svc: data-loss table document_content
DROP TABLE "document_content";

-- svc: data-loss table document_incident_priority
DROP TABLE "document_incident_priority";

-- svc: data-loss table document_incident_type
DROP TABLE "document_incident_type";

-- svc: data-loss table document_term
DROP TABLE "document_term";

-- svc: data-loss table event
DROP TABLE "event";

-- svc: data-loss table flow_step
DROP TABLE "flow_step";

-- svc: data-loss table idempotency_key
DROP TABLE "idempotency_key";

-- svc: data-loss table incident
DROP TABLE "incident";

-- svc: data-loss table incident_cost
DROP TABLE "incident_cost";

-- svc: data-loss table incident_priority
DROP TABLE "incident_priority";

-- svc: data-loss table incident_type
DROP TABLE "incident_type";

-- svc: data-loss table incident_type_template
DROP TABLE "incident_type_template";

-- svc: data-loss table individual
DROP TABLE "individual";

-- svc: data-loss table individual_incident_priority
DROP TABLE "individual_incident_priority";

-- svc: data-loss table individual_incident_type
DROP TABLE "individual_incident_type";

-- svc: data-loss table individual_term
DROP TABLE "individual_term";

-- svc: data-loss table participant
DROP TABLE "participant";

-- svc: data-loss table participant_group
DROP TABLE "participant_group";

-- svc: data-loss table participant_group_member
DROP TABLE "participant_group_member";

-- svc: data-loss table participant_role
DROP TABLE "participant_role";

-- svc: data-loss table recommendation
DROP TABLE "recommendation";

-- svc: data-loss table rotation
DROP TABLE "rotation";

-- svc: data-loss table rotation_member
DROP TABLE "rotation_member";

-- svc: data-loss table service
DROP TABLE "service";

-- svc: data-loss table status_report
DROP TABLE "status_report";

-- svc: data-loss table status_report_reminder
DROP TABLE "status_report_reminder";

-- svc: data-loss table task
DROP TABLE "task";

-- svc: data-loss table task_assignee
DROP TABLE "task_assignee";

-- svc: data-loss table team
DROP TABLE "team";

-- svc: data-loss table team_incident_priority
DROP TABLE "team_incident_priority";

-- svc: data-loss table team_incident_type
DROP TABLE "team_incident_type";

-- svc: data-loss table team_term
DROP TABLE "team_term";

-- svc: data-loss table term
DROP TABLE "term";

-- svc: data-loss position of sequence incident_name_seq
DROP SEQUENCE "incident_name_seq";
