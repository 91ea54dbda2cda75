import { eq, gt, sql } from "drizzle-orm";
import { worker } from "../../drizzle/schema/index.ts";
import { fromNow } from "../database_clock.ts";
import type { ScheduleContext } from "./claims.ts";

type BeatContext = Pick<ScheduleContext, "db" | "databaseClock" | "owner">;

/** Three heartbeats fit into the time after which a worker counts as gone. */
export const heartbeatSeconds = 10;
export const goneSeconds = 30;

/** Records that the worker is alive. */
export async function beat(
  { db, databaseClock, owner }: BeatContext,
  { host, pid }: { host: string; pid: number },
): Promise<void> {
  const now = databaseClock.now();
  await db
    .insert(worker)
    .values({ id: owner, host, pid, startedAt: now, seenAt: now })
    .onConflictDoUpdate({ target: worker.id, set: { seenAt: now } });
}

/** Reads the database's time, by which a worker sets its timers, and the live workers. */
export async function lookAround({
  db,
  databaseClock,
}: Omit<BeatContext, "owner">): Promise<{ now: Date; workers: string[] }> {
  const [seen] = await db
    .select({ now: databaseClock.now(), workers: sql<string[]>`coalesce(array_agg(${worker.id}), '{}')` })
    .from(worker)
    .where(gt(worker.seenAt, fromNow(databaseClock, -goneSeconds)))
    // Prepared, because planning would add to the error of the time.
    .prepare("look_around")
    .execute();
  return seen!;
}

/** Removes the worker when it stops, so that nobody reports it as gone. */
export async function signOff({ db, owner }: BeatContext): Promise<void> {
  await db.delete(worker).where(eq(worker.id, owner));
}
