-- Takes back: worker

-- svc: data-loss table worker
DROP TABLE "worker";

-- svc: data-loss table scheduled_task
DROP TABLE "scheduled_task";

-- svc: data-loss table run_fault
DROP TABLE "run_fault";

-- svc: data-loss table run
DROP TABLE "run";
