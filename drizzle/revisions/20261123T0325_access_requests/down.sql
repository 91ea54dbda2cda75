-- Takes back: access requests

-- svc: data-loss table access_lease
DROP TABLE "access_lease";

-- svc: data-loss table access_request
DROP TABLE "access_request";

-- svc: data-loss table access_role
DROP TABLE "access_role";

DROP INDEX "token_user_idx";
