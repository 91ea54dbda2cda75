import { and, desc, eq, lte, type SQL } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { run, type runTriggers, scheduledTask } from "../../drizzle/schema/index.ts";
import { after } from "../clock.ts";
import { Conflict } from "../errors.ts";
import { behindNow, type DatabaseClock } from "./database_clock.ts";
import { catchUpSeconds, dueSlots } from "./due.ts";
import { nextSlot, previousSlot } from "./slot.ts";
import type { TaskDefinition } from "./tasks.ts";

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
}

/** A run that takes its worker down each time is given up in the end. */
const mostAttempts = 5;
/** How soon to look again at what somebody else is just about to let go. */
const retrySeconds = 1;

type Known = { since: Date; pausedAt: Date | null; now: Date };
type Running = { slot: Date; leaseUntil: Date | null; attempt: number; trigger: Claim["trigger"] };

/**
 * Claims the slot of a task that is due by the database's time, or takes over the run of a worker that has died. Slots
 * that nobody ran are recorded with it: those of a short task in the result of the run that stands for them, those of a
 * daily one as Missed.
 *
 * @returns the claim, or when it makes sense to look again
 */
export async function claimDue(
  context: ScheduleContext,
  task: TaskDefinition,
): Promise<{ claim: Claim } | { lookAgain: Date }> {
  const { config } = context;
  return context.db.transaction(async (tx) => {
    const known = await lockTask(tx, context, task.name);
    const { now, since, pausedAt } = known;
    const next = nextSlot(task.timing, config.timezone, now);
    if (pausedAt) return { lookAgain: next };
    const running = await findRunning(tx, task);
    if (running?.leaseUntil && running.leaseUntil <= now) {
      const claim = await takeOver(tx, context, task, running, now);
      return claim ? { claim } : { lookAgain: after(now, retrySeconds) };
    }
    if (running?.leaseUntil) {
      const latest = previousSlot(task.timing, config.timezone, now);
      const isLatest = running.trigger === "schedule" && running.slot >= latest;
      const soon = isLatest ? next : after(now, retrySeconds);
      return { lookAgain: soon < running.leaseUntil ? soon : running.leaseUntil };
    }
    const last = await lastSlot(tx, task);
    const from = last && last > since ? last : since;
    const { slot, skipped, missed } = dueSlots(task.timing, config.timezone, from, now);
    await recordMissed(tx, context, task, missed);
    if (!slot) return { lookAgain: next };
    const result = skipped && {
      missed_slots: { count: skipped.count, from: skipped.from.toISOString() },
    };
    const claim = await insert(tx, context, { task: task.name, slot, trigger: "schedule", result });
    return claim ? { claim } : { lookAgain: after(now, retrySeconds) };
  });
}

/**
 * Claims a run of its own for a task that somebody wants to be run now; paused or not, they have said so. The run of a
 * worker that has died is taken over instead.
 *
 * @throws Conflict when the task is running
 */
export async function claimNow(context: ScheduleContext, task: TaskDefinition): Promise<Claim> {
  return context.db.transaction(async (tx) => {
    const { now } = await lockTask(tx, context, task.name);
    const running = await findRunning(tx, task);
    const expired = running?.leaseUntil && running.leaseUntil <= now;
    const claim = running
      ? expired && (await takeOver(tx, context, task, running, now))
      : await insert(tx, context, { task: task.name, slot: now, trigger: "eager" });
    if (!claim) throw new Conflict(`${task.name} is running already: svc scheduler status`);
    return claim;
  });
}

/** The claims of one task go one after the other, so each sees what the one before has recorded. */
async function lockTask(tx: Transaction, { databaseClock }: ScheduleContext, name: string): Promise<Known> {
  const { since, pausedAt } = scheduledTask;
  const now = databaseClock.now();
  const read = () =>
    tx.select({ since, pausedAt, now }).from(scheduledTask).where(eq(scheduledTask.name, name)).for("update");
  const [known] = await read();
  if (known) return known;
  await tx.insert(scheduledTask).values({ name, since: now }).onConflictDoNothing();
  const [first] = await read();
  return first!;
}

async function findRunning(tx: Transaction, task: TaskDefinition): Promise<Running | undefined> {
  const { slot, leaseUntil, attempt, trigger } = run;
  const [running] = await tx
    .select({ slot, leaseUntil, attempt, trigger })
    .from(run)
    .where(and(eq(run.task, task.name), eq(run.state, "Running")));
  return running;
}

async function lastSlot(tx: Transaction, task: TaskDefinition): Promise<Date | undefined> {
  const [last] = await tx
    .select({ slot: run.slot })
    .from(run)
    .where(and(eq(run.task, task.name), eq(run.trigger, "schedule")))
    .orderBy(desc(run.slot))
    .limit(1);
  return last?.slot;
}

async function insert(
  tx: Transaction,
  { databaseClock, owner, leaseSeconds }: ScheduleContext,
  values: Pick<Claim, "task" | "slot" | "trigger"> & Pick<typeof run.$inferInsert, "result">,
): Promise<Claim | undefined> {
  const leaseUntil = behindNow(databaseClock, leaseSeconds);
  const [claimed] = await tx
    .insert(run)
    .values({ ...values, state: "Running", owner, leaseUntil, startedAt: databaseClock.now() })
    .onConflictDoNothing()
    .returning({ attempt: run.attempt });
  return claimed && { ...values, owner, attempt: claimed.attempt };
}

async function recordMissed(
  tx: Transaction,
  { databaseClock, owner }: ScheduleContext,
  task: TaskDefinition,
  missed: readonly Date[],
): Promise<void> {
  if (missed.length === 0) return;
  const finishedAt: SQL<Date> = databaseClock.now();
  const common = { task: task.name, state: "Missed", trigger: "schedule", owner, finishedAt } as const;
  await tx
    .insert(run)
    .values(missed.map((slot) => ({ ...common, slot })))
    .onConflictDoNothing();
}

/**
 * Makes the run of a dead worker ours. A transaction of that run which is still open is not waited for (`skip locked`):
 * it holds the row by a key share, so taking over is the one thing that cannot happen beside it.
 *
 * @returns undefined when it cannot be had, or is not worth being run again and has been recorded as failed
 */
async function takeOver(
  tx: Transaction,
  { databaseClock, owner, leaseSeconds }: ScheduleContext,
  task: TaskDefinition,
  { slot, attempt, trigger }: Running,
  now: Date,
): Promise<Claim | undefined> {
  const isIt = and(eq(run.task, task.name), eq(run.slot, slot), eq(run.attempt, attempt));
  const [ours] = await tx
    .select({ slot: run.slot })
    .from(run)
    .where(and(isIt, eq(run.state, "Running"), lte(run.leaseUntil, databaseClock.now())))
    .for("update", { skipLocked: true });
  if (!ours) return undefined;
  const tooLate = "daily" in task.timing && after(slot, catchUpSeconds) < now;
  if (tooLate || attempt >= mostAttempts) {
    const error = tooLate
      ? "Its worker died, and no other was there within six hours"
      : `Its worker died, ${mostAttempts} times`;
    const finishedAt = databaseClock.now();
    await tx.update(run).set({ state: "Failed", error, leaseUntil: null, finishedAt }).where(isIt);
    return undefined;
  }
  const leaseUntil = behindNow(databaseClock, leaseSeconds);
  await tx
    .update(run)
    .set({ owner, attempt: attempt + 1, leaseUntil, startedAt: databaseClock.now() })
    .where(isIt);
  return { task: task.name, slot, owner, attempt: attempt + 1, trigger };
}
