import { hostname } from "node:os";
import { type Claim, claimDue, claimNow, type ScheduleContext } from "../core/schedule/claims.ts";
import { cleanUp } from "../core/schedule/clean.ts";
import { beat, heartbeatSeconds, lookAround, signOff } from "../core/schedule/heartbeat.ts";
import { excuseAttempt } from "../core/schedule/runs.ts";
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
/** After a stop, for runs to finish; what is left is given back. */
const graceMilliseconds = 20_000;

/**
 * Runs tasks whenever their slots are due, until `stop` aborts: then it claims no more, waits for what is under way, and
 * gives back what does not end in time. Each task has a loop of its own, so none waits for another.
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
    // Twice: the first answer also takes the time to connect.
    for (const _ of [1, 2]) if (!(await outage.outlast(() => observe(deps, peers), stop))) return;
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
 * @throws Conflict when it is running already
 * @throws Unavailable when PostgreSQL is away or refuses us
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
    const claimed = await outage.outlast(() => claimDue(schedule(), one.definition, time.now()), stop);
    if (!claimed) return;
    if ("lookAgain" in claimed) {
      await time.sleepUntil(peers.inTurn(schedule(), one.definition, claimed.lookAgain), stop);
      continue;
    }
    const { claim } = claimed;
    const outcome = await runClaim(deps, one, claim, giveUp).catch((err: unknown) =>
      log.error({ err, task: one.definition.name }, "unexpected error at the end of a run"),
    );
    if (outcome?.state === "lost") await outage.outlast(() => excuse(schedule(), claim), stop);
  }
}

async function excuse(context: ScheduleContext, claim: Claim): Promise<true> {
  await excuseAttempt(context, claim);
  return true;
}

/** Says that we live, and hears what time it is and who else does. */
async function observe({ schedule, time, reopen, health }: WorkerDeps, peers: WorkerPeers): Promise<true> {
  health?.asks();
  const say = async () => {
    await beat(schedule(), { host: hostname(), pid: process.pid });
    const sent = performance.now();
    const { now, workers } = await lookAround(schedule());
    time.observe(now, sent, performance.now());
    peers.hear(workers);
  };
  await inTime(patienceMilliseconds, say()).catch((error: unknown) => {
    // A failover may have left us where nothing can be written; by the same address there may be the new primary.
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
    await outage.outlast(() => observe(deps, peers), stop);
    await pause(heartbeatSeconds * 1000, stop);
  }
}

async function cleanOn({ schedule, log }: WorkerDeps, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await cleanUp(schedule()).catch((err: unknown) => log.warn({ err }, "could not delete expired rows"));
    await pause(cleanUpMilliseconds, stop);
  }
}

/** So long a worker lets another one try first: time to claim a slot, and to begin with it. */
const turnSeconds = 0.01;

/**
 * The workers that share the schedule, as far as we have heard of them. For each slot there is an order of them, the same
 * wherever it is computed, so that they do not all come at the same moment and each is the first for its share. Nothing
 * depends on it but who comes when: they still race for the slot.
 */
export class WorkerPeers {
  #workers: readonly string[] = [];

  hear(workers: readonly string[]): void {
    this.#workers = workers;
  }

  /** When to look at a task that has to be looked at by then. What is no slot, as the end of a lease, waits for nobody. */
  inTurn({ owner, config }: Pick<ScheduleContext, "owner" | "config">, task: TaskDefinition, at: Date): Date {
    if (previousSlot(task.timing, config.timezone, at) < at) return at;
    const rank = (worker: string) => Bun.hash.wyhash(`${worker} ${task.name} ${at.getTime()}`);
    const ours = rank(owner);
    const before = this.#workers.filter((worker) => worker !== owner && rank(worker) < ours);
    return after(at, before.length * turnSeconds);
  }
}
