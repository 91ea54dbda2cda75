import type { Database } from "../../drizzle/client.ts";
import type { runTriggers } from "../../drizzle/schema/index.ts";
import { Conflict } from "../../platform/errors.ts";
import { attemptClaim } from "./attempt.ts";
import type { DatabaseClock } from "./database_clock.ts";
import { decide, soonBehind } from "./decide.ts";
import { claimLocked, insertRun, lockTask, seeLocked } from "./locked.ts";
import { nextSlot } from "./slot.ts";
import { takeOver } from "./take_over.ts";
import type { TaskDefinition } from "./tasks.ts";
import { covers, usuallyWanted, wantedOf } from "./wanted.ts";

/** What the verbs of the schedule work with. */
export interface ScheduleContext {
  db: Database;
  databaseClock: DatabaseClock;
  config: { timezone: string };
  /** The worker, as the table `worker` has it. */
  owner: string;
  /** How long a claim holds without being renewed. */
  leaseSeconds: number;
}

/** A run that is ours for as long as we renew its lease. */
export interface Claim {
  task: string;
  slot: Date;
  owner: string;
  attempt: number;
  trigger: (typeof runTriggers)[number];
  /** How many of its attempts have ended for a reason that passes. */
  retries?: number;
}

/** A claim, or when it makes sense to look again. */
export type Claimed = { claim: Claim } | { lookAgain: Date };

/** The second one knows what the first one has seen. */
const attempts = 2;

/**
 * Claims the slot of a task that is due by the database's time, or takes over the run of a worker that has died. Slots
 * that nobody ran are recorded with it: those of a short task in the result of the run that stands for them, those of a
 * daily one as Missed. Whoever has the task in hand is not waited for.
 *
 * `at` is what the caller believes the database's time to be. Where it is right one statement does it, mostly; nothing
 * that is not due is claimed because of it.
 */
export async function claimDue(context: ScheduleContext, task: TaskDefinition, at?: Date): Promise<Claimed> {
  const { timezone } = context.config;
  let wanted = at && usuallyWanted(task, timezone, at);
  for (let left = attempts; wanted && left > 0; left -= 1) {
    const tried = await attemptClaim(context, task.name, wanted);
    if (!tried) break;
    const { seen, claim } = tried;
    if (claim) return { claim };
    const decision = decide(task, timezone, seen);
    if (decision.what === "wait") return { lookAgain: decision.lookAgain };
    const due = wantedOf(task, timezone, decision);
    // It was there to be claimed, so somebody else has it in hand.
    if (due && covers(wanted, due))
      return { lookAgain: soonBehind(seen.now, nextSlot(task.timing, timezone, seen.now)) };
    wanted = due;
  }
  return claimLocked(context, task);
}

/**
 * Claims a run of its own for a task that somebody wants to be run now; paused or not, they have said so. The run of a
 * worker that has died is taken over instead.
 *
 * @throws Conflict when the task is running
 */
export async function claimNow(context: ScheduleContext, task: TaskDefinition): Promise<Claim> {
  return context.db.transaction(async (tx) => {
    await lockTask(tx, context, task.name, "wait");
    const { now, running } = await seeLocked(tx, context, task.name);
    const expired = running && running.leaseUntil <= now;
    const taken = expired ? await takeOver(tx, context, task, running, now) : undefined;
    if (taken) return taken;
    // One that has just been given up is recorded as failed, and in nobody's way.
    const inTheWay = expired ? (await seeLocked(tx, context, task.name)).running : running;
    const claim = inTheWay
      ? undefined
      : await insertRun(tx, context, { task: task.name, slot: now, trigger: "eager" });
    if (!claim) throw new Conflict(`${task.name} is running already: svc scheduler status`);
    return claim;
  });
}
