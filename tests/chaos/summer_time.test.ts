import { beforeEach, expect, test } from "bun:test";
import { asc, eq, sql } from "drizzle-orm";
import { claimDue } from "../../core/schedule/claims.ts";
import { finishRun } from "../../core/schedule/runs.ts";
import { findTask } from "../../core/schedule/tasks.ts";
import { run } from "../../drizzle/schema/index.ts";
import { TestClock } from "../support/clock.ts";
import { useDatabase } from "../support/database/database.ts";
import { numbers } from "../support/domain/numbers.ts";
import { scheduleOf } from "../support/domain/schedule.ts";

const client = useDatabase(3);
beforeEach(() => client.db.execute(sql`truncate run, scheduled_task cascade`).then(() => {}));

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];
const days = 7;

/** The first minute of each local date at which the wall clock shows that time or a later one, by trying each minute. */
function expected(zone: string, time: string, from: number, to: number): number[] {
  const format = new Intl.DateTimeFormat("sv", { timeZone: zone, dateStyle: "short", timeStyle: "medium" });
  const found = new Map<string, number>();
  for (let at = Math.floor((from - day) / minute) * minute; at <= to; at += minute) {
    const [date, shown] = format.format(at).split(" ") as [string, string];
    if (shown >= time && !found.has(date)) found.set(date, at);
  }
  return [...found.values()].filter((at) => at > from);
}

const name = "document-term-sync";
const weeks = [
  ["Europe/Berlin", "2026-03-26"],
  ["Europe/Berlin", "2026-10-22"],
  ["America/New_York", "2026-03-05"],
  ["America/New_York", "2026-10-29"],
  ["Australia/Lord_Howe", "2026-04-02"],
  ["Australia/Lord_Howe", "2026-10-01"],
  // The clocks change by two hours.
  ["Antarctica/Troll", "2026-03-26"],
  ["Antarctica/Troll", "2026-10-22"],
  // The clocks skip from midnight to one o'clock.
  ["Africa/Cairo", "2026-04-21"],
] as const;

test.each(weeks)(
  "%s, the week from %s: a daily task runs once a day despite dying workers and hours without any",
  async (zone, date) => {
    const definition = findTask(name)!;
    if (!("daily" in definition.timing)) throw new Error("not a daily one");
    const start = Date.parse(`${date}T00:00:01Z`);
    const end = start + days * day;
    const below = numbers(start);
    const clock = new TestClock(new Date(start));
    const schedule = (owner: string) => scheduleOf(client.db, clock, owner, zone);
    await claimDue(schedule("a"), definition);
    const there: number[] = [];
    const finished: number[] = [];
    while (clock.now().getTime() < end) {
      const away = below(40);
      // Usually some minutes, sometimes hours, after which a missed slot may or may not run late.
      clock.advance(60 * (away === 0 ? 420 + below(300) : away < 3 ? below(300) : 1 + below(15)));
      there.push(clock.now().getTime());
      for (const owner of ["a", "b", "c"]) {
        const claimed = await claimDue(schedule(owner), definition);
        if (!("claim" in claimed)) continue;
        if (owner !== "c" && below(3) === 0) {
          // It dies, and the next worker after the lease takes over the run.
          clock.advance(31);
          continue;
        }
        expect(await finishRun(schedule(owner), claimed.claim, { faults: [] })).toBe(true);
        finished.push(claimed.claim.slot.getTime());
      }
    }
    clock.advance(60);
    const last = await claimDue(schedule("d"), definition);
    if ("claim" in last) {
      await finishRun(schedule("d"), last.claim, { faults: [] });
      finished.push(last.claim.slot.getTime());
    }
    const due = expected(zone, definition.timing.daily, start, there.at(-1)!);
    const inTime = (slot: number) => there.some((at) => at >= slot && at <= slot + 6 * hour);
    const rows = await client.db
      .select({ slot: run.slot, state: run.state })
      .from(run)
      .where(eq(run.task, name))
      .orderBy(asc(run.slot));
    const seen = rows.map(({ slot, state }) => `${slot.toISOString()} ${state}`);
    const wanted = due.map((slot) => `${new Date(slot).toISOString()} ${inTime(slot) ? "Done" : "Missed"}`);
    expect(seen).toEqual(wanted);
    expect(finished.toSorted((a, b) => a - b)).toEqual(due.filter(inTime));
    expect(due.length).toBeWithin(days - 1, days + 2);
  },
);
