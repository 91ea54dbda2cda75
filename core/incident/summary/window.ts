import { and, asc, desc, eq, gte, lt, type SQL } from "drizzle-orm";
import type { Database } from "../../../drizzle/client.ts";
import { run } from "../../../drizzle/schema/index.ts";
import { summaryTask } from "../../schedule/tasks.ts";

/** A summary covers what has ended after `since`, up to and including `until`. */
export interface Window {
  since: Date;
  until: Date;
}

/**
 * Returns the window of a summary. It begins where the last sent one ended, so that the next summary covers a day whose
 * own was missed or failed. If a date has several, the first one counts: run by hand in the morning, it is that day's
 * summary for most people, who get no other. The first summary ever covers one day.
 */
export async function windowOf(db: Pick<Database, "select">, slot: Date, timezone: string): Promise<Window> {
  const zoned = (at: Date) => at.toTemporalInstant().toZonedDateTimeISO(timezone);
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
