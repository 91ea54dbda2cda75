-- Reverts: initial

-- svc: data-loss table worker
DROP TABLE "worker";

-- svc: data-loss table client_certificate
DROP TABLE "client_certificate";

-- svc: data-loss table token
DROP TABLE "token";

-- svc: data-loss table team_term
DROP TABLE "team_term";

-- svc: data-loss table individual_term
DROP TABLE "individual_term";

-- svc: data-loss table document_term
DROP TABLE "document_term";

-- svc: data-loss table definition_term
DROP TABLE "definition_term";

-- svc: data-loss table term
DROP TABLE "term";

-- svc: data-loss table team_incident_type
DROP TABLE "team_incident_type";

-- svc: data-loss table team_incident_priority
DROP TABLE "team_incident_priority";

-- svc: data-loss table recommendation
DROP TABLE "recommendation";

-- svc: data-loss table participant_group_member
DROP TABLE "participant_group_member";

-- svc: data-loss table team
DROP TABLE "team";

-- svc: data-loss table task_assignee
DROP TABLE "task_assignee";

-- svc: data-loss table task
DROP TABLE "task";

-- svc: data-loss table status_report_reminder
DROP TABLE "status_report_reminder";

-- svc: data-loss table status_report
DROP TABLE "status_report";

-- svc: data-loss table signing_key
DROP TABLE "signing_key";

-- svc: data-loss table sign_in
DROP TABLE "sign_in";

-- svc: data-loss table setting
DROP TABLE "setting";

-- svc: data-loss table challenge
DROP TABLE "challenge";

-- svc: data-loss table session
DROP TABLE "session";

-- svc: data-loss table rotation_member
DROP TABLE "rotation_member";

-- svc: data-loss table rotation
DROP TABLE "rotation";

-- svc: data-loss table participant_role
DROP TABLE "participant_role";

-- svc: data-loss table participant_group
DROP TABLE "participant_group";

-- svc: data-loss table participant
DROP TABLE "participant";

-- svc: data-loss table individual_incident_type
DROP TABLE "individual_incident_type";

-- svc: data-loss table incident_type_template
DROP TABLE "incident_type_template";

-- svc: data-loss table incident_service
DROP TABLE "incident_service";

-- svc: data-loss table incident_link
DROP TABLE "incident_link";

-- svc: data-loss table incident_cost
DROP TABLE "incident_cost";

-- svc: data-loss table incident_application
DROP TABLE "incident_application";

-- svc: data-loss table flow_step
DROP TABLE "flow_step";

-- svc: data-loss table event
DROP TABLE "event";

-- svc: data-loss table document_incident_type
DROP TABLE "document_incident_type";

-- svc: data-loss table document_incident_priority
DROP TABLE "document_incident_priority";

-- svc: data-loss table document_content
DROP TABLE "document_content";

-- svc: data-loss table document
DROP TABLE "document";

-- svc: data-loss table delivery
DROP TABLE "delivery";

-- svc: data-loss table conversation_message
DROP TABLE "conversation_message";

-- svc: data-loss table conversation
DROP TABLE "conversation";

-- svc: data-loss table access_lease
DROP TABLE "access_lease";

-- svc: data-loss table access_request
DROP TABLE "access_request";

-- svc: data-loss table incident
DROP TABLE "incident";

-- svc: data-loss table incident_type
DROP TABLE "incident_type";

-- svc: data-loss table service
DROP TABLE "service";

-- svc: data-loss table scheduled_task
DROP TABLE "scheduled_task";

-- svc: data-loss table run_fault
DROP TABLE "run_fault";

-- svc: data-loss table run
DROP TABLE "run";

-- svc: data-loss table individual_incident_priority
DROP TABLE "individual_incident_priority";

-- svc: data-loss table individual
DROP TABLE "individual";

-- svc: data-loss table incident_priority
DROP TABLE "incident_priority";

-- svc: data-loss table idempotency_key
DROP TABLE "idempotency_key";

-- svc: data-loss table definition
DROP TABLE "definition";

-- svc: data-loss table cost_formula_role
DROP TABLE "cost_formula_role";

-- svc: data-loss table cost_formula
DROP TABLE "cost_formula";

-- svc: data-loss table authority_key
DROP TABLE "authority_key";

-- svc: data-loss table audit_log
DROP TABLE "audit_log";

-- svc: data-loss table application
DROP TABLE "application";

-- svc: data-loss table access_role
DROP TABLE "access_role";

-- svc: data-loss position of sequence incident_name_seq
DROP SEQUENCE "incident_name_seq";
