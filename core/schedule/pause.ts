import { and, eq, isNotNull, isNull } from "drizzle-orm";
import { scheduledTask } from "../../drizzle/schema/index.ts";
import { audit } from "../audit.ts";
import type { Clock } from "../../platform/clock.ts";
import type { ScheduleContext } from "./claim.ts";
import type { TaskName } from "./tasks.ts";

type PauseContext = Pick<ScheduleContext, "db" | "databaseClock"> & { clock: Clock };

/** From now on no slot of the task is claimed; a run that is under way goes on. @returns whether that is news */
export async function pauseTask(
  { db, databaseClock, clock }: PauseContext,
  name: TaskName,
): Promise<boolean> {
  const now = databaseClock.now();
  return db.transaction(async (tx) => {
    await tx.insert(scheduledTask).values({ name, since: now }).onConflictDoNothing();
    const paused = await tx
      .update(scheduledTask)
      .set({ pausedAt: now })
      .where(and(eq(scheduledTask.name, name), isNull(scheduledTask.pausedAt)))
      .returning({ name: scheduledTask.name });
    if (paused.length === 0) return false;
    await audit(tx, { at: clock.now(), actor: "system", action: "scheduled_task.paused", subject: name });
    return true;
  });
}

/** From now on its slots are claimed again; those of the pause are not made up for. @returns whether that is news */
export async function resumeTask(
  { db, databaseClock, clock }: PauseContext,
  name: TaskName,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const resumed = await tx
      .update(scheduledTask)
      .set({ pausedAt: null, since: databaseClock.now() })
      .where(and(eq(scheduledTask.name, name), isNotNull(scheduledTask.pausedAt)))
      .returning({ name: scheduledTask.name });
    if (resumed.length === 0) return false;
    await audit(tx, { at: clock.now(), actor: "system", action: "scheduled_task.resumed", subject: name });
    return true;
  });
}
