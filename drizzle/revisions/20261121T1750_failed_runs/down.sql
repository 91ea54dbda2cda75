-- Takes back: failed runs

DROP INDEX "run_failed_idx";
