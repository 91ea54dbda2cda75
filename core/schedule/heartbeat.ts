import { eq } from "drizzle-orm";
import { worker } from "../../drizzle/schema/index.ts";
import type { ScheduleContext } from "./claim.ts";

type BeatContext = Pick<ScheduleContext, "db" | "databaseClock" | "owner">;

/** Three of them fit into the time after which a worker counts as gone. */
export const heartbeatSeconds = 10;
export const goneSeconds = 30;

/** Says that the worker lives. @returns the database's time, by which the worker sets its timers */
export async function beat(
  { db, databaseClock, owner }: BeatContext,
  { host, pid }: { host: string; pid: number },
): Promise<Date> {
  const now = databaseClock.now();
  const [seen] = await db
    .insert(worker)
    .values({ id: owner, host, pid, startedAt: now, seenAt: now })
    .onConflictDoUpdate({ target: worker.id, set: { seenAt: now } })
    .returning({ seenAt: worker.seenAt });
  return seen!.seenAt;
}

/** The worker ends, and nobody shall miss it. */
export async function signOff({ db, owner }: BeatContext): Promise<void> {
  await db.delete(worker).where(eq(worker.id, owner));
}
