import { hostname } from "node:os";
import { type Claim, claimDue, claimNow, type ScheduleContext } from "../core/schedule/claims.ts";
import { cleanUp } from "../core/schedule/clean.ts";
import { beat, heartbeatSeconds, lookAround, signOff } from "../core/schedule/heartbeat.ts";
import { forgiveAttempt } from "../core/schedule/runs.ts";
import { previousSlot } from "../core/schedule/slots.ts";
import type { TaskDefinition } from "../core/schedule/tasks.ts";
import { errorCode, operatorsError, withoutQuery } from "../drizzle/database_error.ts";
import { after } from "../platform/clock.ts";
import type { WorkerDeps } from "./deps.ts";
import { Outage } from "./outage.ts";
import { type Outcome, runClaim, type Work } from "./run.ts";
import { inTime, NoAnswer, pause } from "./time.ts";

const patienceMilliseconds = 5000;
/** read_only_sql_transaction */
const readOnly = "25006";
const cleanUpMilliseconds = 3_600_000;
/** How long runs may take to finish after a stop. The rest is released. */
const graceMilliseconds = 20_000;

/**
 * Runs tasks whenever their slots are due. When `stop` aborts, it claims nothing more, waits for running tasks, and
 * gives back those that do not finish in time. Each task has its own loop, so none waits for another.
 */
export async function work(
  deps: WorkerDeps,
  works: readonly Work[],
  stop: AbortSignal,
  grace = graceMilliseconds,
): Promise<void> {
  const { outage = new Outage(deps.log) } = deps;
  const peers = new WorkerPeers();
  try {
    // Twice, because the first answer includes the time to connect.
    for (const _ of [1, 2]) if (!(await outage.retryUntilAvailable(() => observe(deps, peers), stop))) return;
    await followAll(deps, works, { outage, peers, grace }, stop);
  } finally {
    await inTime(patienceMilliseconds, signOff(deps.schedule())).catch(() => {});
  }
}

async function followAll(
  deps: WorkerDeps,
  works: readonly Work[],
  { outage, peers, grace }: { outage: Outage; peers: WorkerPeers; grace: number },
  stop: AbortSignal,
): Promise<void> {
  const [giveUp, heart] = [new AbortController(), new AbortController()];
  let timer: NodeJS.Timeout | undefined;
  const drain = () => {
    timer = setTimeout(() => giveUp.abort(), grace);
  };
  stop.addEventListener("abort", drain, { once: true });
  const beside = Promise.all([beatOn(deps, peers, outage, heart.signal), cleanOn(deps, stop)]);
  try {
    await Promise.all(works.map((one) => follow(deps, one, { outage, peers }, stop, giveUp.signal)));
  } finally {
    clearTimeout(timer);
    heart.abort();
    await inTime(patienceMilliseconds, beside).catch(() => {});
  }
}

/**
 * Runs a task now.
 *
 * @throws Conflict when it is already running
 * @throws Unavailable when PostgreSQL is unavailable or refuses the connection
 */
export async function workNow(deps: WorkerDeps, one: Work, stop: AbortSignal): Promise<Outcome> {
  const now = async () => {
    await observe(deps, new WorkerPeers());
    try {
      const claim = await claimNow(deps.schedule(), one.definition);
      return await runClaim(deps, one, claim, stop);
    } finally {
      await inTime(patienceMilliseconds, signOff(deps.schedule())).catch(() => {});
    }
  };
  return now().catch((error: unknown) => {
    throw operatorsError(withoutQuery(error));
  });
}

async function follow(
  deps: WorkerDeps,
  one: Work,
  { outage, peers }: { outage: Outage; peers: WorkerPeers },
  stop: AbortSignal,
  giveUp: AbortSignal,
): Promise<void> {
  const { log, schedule, time } = deps;
  while (!stop.aborted) {
    const claimed = await outage.retryUntilAvailable(async () => {
      const sent = performance.now();
      const answer = await claimDue(schedule(), one.definition, time.now());
      // The database's clock may have been set since the last heartbeat, and the run goes by its time.
      if ("claim" in answer) time.observe(answer.now, sent, performance.now());
      return answer;
    }, stop);
    if (!claimed) return;
    if ("lookAgain" in claimed) {
      await time.sleepUntil(peers.inTurn(schedule(), one.definition, claimed.lookAgain), stop);
      continue;
    }
    const { claim } = claimed;
    const outcome = await runClaim(deps, one, claim, giveUp).catch((err: unknown) =>
      log.error({ err, task: one.definition.name }, "unexpected error at the end of a run"),
    );
    if (outcome?.state === "lost") await outage.retryUntilAvailable(() => forgive(schedule(), claim), stop);
  }
}

async function forgive(context: ScheduleContext, claim: Claim): Promise<true> {
  await forgiveAttempt(context, claim);
  return true;
}

/** Sends a heartbeat, and reads the database's time and the live workers. */
async function observe({ schedule, time, reopen, health }: WorkerDeps, peers: WorkerPeers): Promise<true> {
  health?.asks();
  const say = async () => {
    await beat(schedule(), { host: hostname(), pid: process.pid });
    const sent = performance.now();
    const { now, workers } = await lookAround(schedule());
    time.observe(now, sent, performance.now());
    peers.setPeers(workers);
  };
  await inTime(patienceMilliseconds, say()).catch((error: unknown) => {
    // After a failover this may be a read-only replica. Reconnecting to the same address may reach the new primary.
    if (error instanceof NoAnswer || errorCode(withoutQuery(error)) === readOnly) reopen();
    throw error;
  });
  health?.answered();
  return true;
}

async function beatOn(
  deps: WorkerDeps,
  peers: WorkerPeers,
  outage: Outage,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    await outage.retryUntilAvailable(() => observe(deps, peers), stop);
    await pause(heartbeatSeconds * 1000, stop);
  }
}

async function cleanOn({ schedule, log }: WorkerDeps, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await cleanUp(schedule()).catch((err: unknown) => log.warn({ err }, "could not delete expired rows"));
    await pause(cleanUpMilliseconds, stop);
  }
}

/** How long a worker lets the previous one in order try first: enough to claim a slot and start. */
const turnSeconds = 0.01;

/**
 * The workers that share the schedule, as of the last heartbeat. Each slot has an order of workers, computed
 * identically everywhere, so that they do not all start at once and each is first for its share. The order is only an
 * optimization: the workers still compete for the slot.
 */
export class WorkerPeers {
  #workers: readonly string[] = [];

  setPeers(workers: readonly string[]): void {
    this.#workers = workers;
  }

  /**
   * When to check a task that is next due at `at`. A time that is not a slot, such as the end of a lease, is not
   * delayed.
   */
  inTurn({ owner, config }: Pick<ScheduleContext, "owner" | "config">, task: TaskDefinition, at: Date): Date {
    if (previousSlot(task.timing, config.timezone, at) < at) return at;
    const rank = (worker: string) => Bun.hash.wyhash(`${worker} ${task.name} ${at.getTime()}`);
    const ours = rank(owner);
    const before = this.#workers.filter((worker) => worker !== owner && rank(worker) < ours);
    return after(at, before.length * turnSeconds);
  }
}
