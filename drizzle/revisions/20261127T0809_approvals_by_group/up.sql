-- approvals by group
-- Revision 20261127T0809_approvals_by_group, after 20261127T0758_impact_of_incidents

ALTER TABLE "access_role" DROP CONSTRAINT "access_role_approval_known";

ALTER TABLE "access_request" ADD COLUMN "approved_by" text[] DEFAULT '{}' NOT NULL;

ALTER TABLE "access_role" ADD COLUMN "approver_groups" text[] DEFAULT '{}' NOT NULL;

ALTER TABLE "access_role" ADD COLUMN "approvals_needed" integer DEFAULT 1 NOT NULL;

ALTER TABLE "access_role" ADD CONSTRAINT "access_role_approval_known" CHECK (approval in ('none', 'commander', 'admin', 'group'));

ALTER TABLE "access_role" ADD CONSTRAINT "access_role_approvals_needed" CHECK (approvals_needed between 1 and 10);
