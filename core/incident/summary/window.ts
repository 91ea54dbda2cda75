import { and, asc, desc, eq, gte, lt, type SQL } from "drizzle-orm";
import type { Database } from "../../../drizzle/client.ts";
import { run } from "../../../drizzle/schema/index.ts";
import { summaryTask } from "../../schedule/tasks.ts";

/** What has ended behind `since`, up to and with `until`, is told of by a summary. */
export interface Window {
  since: Date;
  until: Date;
}

/**
 * The window of a summary: it begins where the last one that was sent has ended, so that a day whose summary was missed
 * or has failed is told of by the next one. Of several on one date, the first counts: by hand in the morning, it is that
 * day's for most people, who get no other. Before there was one, a summary tells of the day up to the same time.
 */
export async function windowOf(db: Pick<Database, "select">, slot: Date, timezone: string): Promise<Window> {
  const zoned = (at: Date) =>
    Temporal.Instant.fromEpochMilliseconds(at.getTime()).toZonedDateTimeISO(timezone);
  const dayOf = (at: Date) => new Date(zoned(at).startOfDay().epochMilliseconds);
  const runs = (condition: SQL | undefined, order: SQL) =>
    db
      .select({ slot: run.slot })
      .from(run)
      .where(and(eq(run.task, summaryTask), lt(run.slot, dayOf(slot)), condition))
      .orderBy(order)
      .limit(1);
  const isDone = eq(run.state, "Done");
  const [last] = await runs(isDone, desc(run.slot));
  if (last) {
    const [first] = await runs(and(isDone, gte(run.slot, dayOf(last.slot))), asc(run.slot));
    return { since: (first ?? last).slot, until: slot };
  }
  const [oldest] = await runs(undefined, asc(run.slot));
  const before = zoned(oldest?.slot ?? slot).subtract({ days: 1 });
  return { since: new Date(before.epochMilliseconds), until: slot };
}
