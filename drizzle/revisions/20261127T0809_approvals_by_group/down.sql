-- Reverts: approvals by group

ALTER TABLE "access_role" DROP CONSTRAINT "access_role_approval_known";

ALTER TABLE "access_role" DROP CONSTRAINT "access_role_approvals_needed";

-- svc: no-data-loss the audit log has them, and the previous release does not use it
ALTER TABLE "access_request" DROP COLUMN "approved_by";

-- svc: data-loss column access_role.approver_groups
ALTER TABLE "access_role" DROP COLUMN "approver_groups";

-- svc: data-loss column access_role.approvals_needed
ALTER TABLE "access_role" DROP COLUMN "approvals_needed";

UPDATE "access_role" SET approval = 'admin' WHERE approval = 'group';

ALTER TABLE "access_role" ADD CONSTRAINT "access_role_approval_known" CHECK (approval in ('none', 'commander', 'admin'));
