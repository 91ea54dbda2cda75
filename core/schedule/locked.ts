import { eq, type SQL, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { run, scheduledTask } from "../../drizzle/schema/index.ts";
import type { Claim, Claimed, ScheduleContext } from "./claim.ts";
import { behindNow } from "./database_clock.ts";
import { decide, soonBehind } from "./decide.ts";
import { see, type Seen } from "./seen.ts";
import { nextSlot } from "./slot.ts";
import { takeOver } from "./take_over.ts";
import type { TaskDefinition } from "./tasks.ts";
import { resultOf } from "./wanted.ts";

const missedAtOnce = 1000;

/** Claims what is due, whatever it is that has to be done for that, while nobody else can claim the task or pause it. */
export async function claimLocked(context: ScheduleContext, task: TaskDefinition): Promise<Claimed> {
  const { config } = context;
  return context.db.transaction(async (tx) => {
    const held = await lockTask(tx, context, task.name, "skip");
    const seen = await seeLocked(tx, context, task.name);
    const { now } = seen;
    const next = nextSlot(task.timing, config.timezone, now);
    const soon = { lookAgain: soonBehind(now, next) };
    if (!held) return soon;
    const decision = decide(task, config.timezone, seen);
    if (decision.what === "wait") return { lookAgain: decision.lookAgain };
    if (decision.what === "take over") {
      const claim = await takeOver(tx, context, task, decision.running, now);
      return claim ? { claim } : soon;
    }
    const { slot, missed } = decision;
    await recordMissed(tx, context, task, missed);
    if (!slot) return { lookAgain: next };
    const values = { task: task.name, slot, trigger: "schedule", result: resultOf(decision) } as const;
    const claim = await insertRun(tx, context, values);
    return claim ? { claim } : soon;
  });
}

/**
 * Makes the task ours until the end of the transaction: nobody else claims or pauses it meanwhile. Should this process be
 * frozen in the middle, PostgreSQL ends the transaction after a lease.
 *
 * @returns false when somebody else has it and is to be skipped
 */
export async function lockTask(
  tx: Transaction,
  { databaseClock, leaseSeconds }: ScheduleContext,
  name: string,
  whoever: "wait" | "skip",
): Promise<boolean> {
  const ours = scheduledTask.name;
  const idle = sql`set_config('idle_in_transaction_session_timeout', ${`${leaseSeconds}s`}, true)`;
  const lock = async () => {
    const select = tx.select({ idle }).from(scheduledTask).where(eq(ours, name));
    const held = await (whoever === "wait"
      ? select.for("update")
      : select.for("update", { skipLocked: true }));
    return held.length > 0;
  };
  const known = async () => (await tx.$count(scheduledTask, eq(ours, name))) > 0;
  if (await lock()) return true;
  if (await known()) return false;
  await tx.insert(scheduledTask).values({ name, since: databaseClock.now() }).onConflictDoNothing();
  return lock();
}

/** How a task stands that is known, since somebody has locked it: a statement of its own sees what was there before. */
export async function seeLocked(
  tx: Transaction,
  { databaseClock }: ScheduleContext,
  name: string,
): Promise<Seen> {
  return (await see(tx, databaseClock, name))!;
}

/** Claims a run that nobody has yet. @returns undefined when somebody else was first */
export async function insertRun(
  tx: Transaction,
  { databaseClock, owner, leaseSeconds }: ScheduleContext,
  values: Pick<Claim, "task" | "slot" | "trigger"> & Pick<typeof run.$inferInsert, "result">,
): Promise<Claim | undefined> {
  const { task, slot, trigger } = values;
  const leaseUntil = behindNow(databaseClock, leaseSeconds);
  const [claimed] = await tx
    .insert(run)
    .values({ ...values, state: "Running", owner, leaseUntil, startedAt: databaseClock.now() })
    .onConflictDoNothing()
    .returning({ attempt: run.attempt });
  return claimed && { task, slot, trigger, owner, attempt: claimed.attempt };
}

async function recordMissed(
  tx: Transaction,
  { databaseClock, owner }: ScheduleContext,
  task: TaskDefinition,
  missed: readonly Date[],
): Promise<void> {
  const finishedAt: SQL<Date> = databaseClock.now();
  const common = { task: task.name, state: "Missed", trigger: "schedule", owner, finishedAt } as const;
  // Of one statement PostgreSQL takes so many values and no more: a clock that was wrong may leave decades to be noted.
  for (let from = 0; from < missed.length; from += missedAtOnce) {
    const slots = missed.slice(from, from + missedAtOnce);
    await tx
      .insert(run)
      .values(slots.map((slot) => ({ ...common, slot })))
      .onConflictDoNothing();
  }
}
