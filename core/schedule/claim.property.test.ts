import { beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import fc from "fast-check";
import { run, type runTriggers, scheduledTask } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { scheduleOf } from "../../tests/support/domain/schedule.ts";
import { type Claimed, claimDue } from "./claims.ts";
import { previousSlot } from "./slots.ts";
import type { Timing } from "./tasks.ts";

setDefaultTimeout(120_000);

const client = useDatabase(4);
beforeEach(() => client.db.execute(sql`truncate run, scheduled_task cascade`).then(() => {}));

const zone = "Europe/Berlin";
/** A time, in periods of the task and seconds before now. */
const ago = fc.record({
  periods: fc.integer({ min: -1, max: 4 }),
  seconds: fc.integer({ min: -40, max: 40 }),
});
const state = fc.record({
  timing: fc.constantFrom<Timing>(
    { every: 60 },
    { every: 3600 },
    { daily: "18:00:00" },
    { daily: "02:30:00" },
  ),
  /** Seconds after a slot. */
  late: fc.constantFrom(0, 0, 0.001, 1, 20, 59, 3 * 3600, 7 * 3600),
  since: ago,
  paused: fc.constantFrom(false, false, false, true),
  /** Slots that have run, counted back from the due one. A negative number is a future slot. */
  ran: fc.uniqueArray(fc.integer({ min: -1, max: 3 }), { maxLength: 3 }),
  running: fc.option(
    fc.record({
      slotsAgo: fc.integer({ min: 0, max: 2 }),
      trigger: fc.constantFrom<(typeof runTriggers)[number]>("schedule", "eager"),
      leaseSeconds: fc.constantFrom(-20, -0.001, 0, 0.001, 0.5, 20),
      attempt: fc.integer({ min: 1, max: 6 }),
    }),
    { freq: 3 },
  ),
});
/** The caller's idea of the time, right or wrong. */
const idea = fc.oneof({ weight: 3, arbitrary: fc.constant({ periods: 0, seconds: 0 }) }, ago);
type State = typeof state extends fc.Arbitrary<infer S> ? S : never;

const periodOf = (timing: Timing) => ("every" in timing ? timing.every : 24 * 3600);

/** Creates two tasks in the same state. @returns the time */
async function stand({ timing, late, since, paused, ran, running }: State, names: string[]): Promise<Date> {
  const slotAgo = (slots: number) =>
    previousSlot(timing, zone, after(new Date("2026-10-25T22:00:00Z"), -slots * periodOf(timing)));
  const now = after(slotAgo(0), late);
  const sinceAt = after(now, -since.periods * periodOf(timing) - since.seconds);
  for (const name of names) {
    await client.db.insert(scheduledTask).values({ name, since: sinceAt, pausedAt: paused ? sinceAt : null });
    const common = { task: name, owner: "z", startedAt: sinceAt };
    for (const slots of ran)
      await client.db.insert(run).values({
        ...common,
        slot: slotAgo(slots),
        state: "Done",
        trigger: "schedule",
        finishedAt: sinceAt,
      });
    if (running)
      await client.db
        .insert(run)
        .values({
          ...common,
          slot: slotAgo(running.slotsAgo),
          state: "Running",
          trigger: running.trigger,
          attempt: running.attempt,
          leaseUntil: after(now, running.leaseSeconds),
        })
        .onConflictDoNothing();
  }
  return now;
}

const runsOf = async (name: string) =>
  (await client.db.select().from(run).where(eq(run.task, name)).orderBy(run.slot)).map(
    ({ task: _, ...rest }) => rest,
  );
const nameless = (claimed: Claimed) => ("claim" in claimed ? { ...claimed.claim, task: "" } : claimed);

test("claims use the database's time, not the worker's", async () => {
  let [nth, claims, waits] = [0, 0, 0];
  await fc.assert(
    fc.asyncProperty(state, idea, async (one, believed) => {
      nth += 1;
      const [quick, careful] = [`quick ${nth}`, `careful ${nth}`];
      const now = await stand(one, [quick, careful]);
      const context = scheduleOf(client.db, new TestClock(now), "a", zone);
      const definition = { timing: one.timing, showsTime: false, timeoutSeconds: 60 };
      const at = after(now, -believed.periods * periodOf(one.timing) - believed.seconds);
      const answers = [
        await claimDue(context, { name: quick, ...definition }, at),
        await claimDue(context, { name: careful, ...definition }),
      ].map(nameless);
      expect(answers[0]).toEqual(answers[1]!);
      expect(await runsOf(quick)).toEqual(await runsOf(careful));
      if ("lookAgain" in answers[0]!) waits += 1;
      else claims += 1;
    }),
    { numRuns: 150 },
  );
  // Both outcomes are common.
  expect(Math.min(claims, waits)).toBeGreaterThan(10);
});
