-- Takes back: authority keys

-- svc: data-loss table authority_key
DROP TABLE "authority_key";

DROP INDEX "access_lease_handle_idx";
