import { beforeEach, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { run } from "../../../drizzle/schema/index.ts";
import { TestClock } from "../../../tests/support/clock.ts";
import { useDatabase } from "../../../tests/support/database/database.ts";
import { scheduleOf } from "../../../tests/support/domain/schedule.ts";
import { cleanUp } from "../../schedule/clean.ts";
import { nextSlot, previousSlot } from "../../schedule/slots.ts";
import { summaryTask } from "../../schedule/tasks.ts";
import { windowOf } from "./window.ts";

const client = useDatabase(1);
const zone = "Europe/Berlin";
const evening = { daily: "18:00:00" };
const day = (date: string) => nextSlot(evening, zone, new Date(`${date}T00:00:00Z`));

beforeEach(async () => void (await client.db.execute(sql`truncate run, scheduled_task cascade`)));
const note = (slot: Date, state: "Done" | "Failed" | "Missed", trigger: "schedule" | "eager" = "schedule") =>
  client.db.insert(run).values({
    task: summaryTask,
    slot,
    state,
    trigger,
    owner: "a",
    finishedAt: slot,
    startedAt: state === "Missed" ? null : slot,
    error: state === "Failed" ? "x" : null,
  });
const since = async (slot: Date) => (await windowOf(client.db, slot, zone)).since;

describe("a summary starts at", () => {
  test("the previous one", async () => {
    await note(day("2026-12-01"), "Done");
    expect(await windowOf(client.db, day("2026-12-02"), zone)).toEqual({
      since: day("2026-12-01"),
      until: day("2026-12-02"),
    });
  });

  test("the last one sent, if others were missed or failed", async () => {
    await note(day("2026-12-01"), "Done");
    await note(day("2026-12-02"), "Missed");
    await note(day("2026-12-03"), "Failed");
    expect(await since(day("2026-12-04"))).toEqual(day("2026-12-01"));
  });

  test.each([
    ["2026-10-24", "2026-10-25", 25],
    ["2026-03-28", "2026-03-29", 23],
  ])("the evening before, on a day that is longer or shorter (%s to %s)", async (before, date, hours) => {
    const slot = day(date);
    expect((slot.getTime() - (await since(slot)).getTime()) / 3_600_000).toBe(hours);
    await note(day(before), "Done");
    expect((slot.getTime() - (await since(slot)).getTime()) / 3_600_000).toBe(hours);
  });

  test("the evening before on every day of a year, without a gap or overlap", async () => {
    let slot = day("2026-01-01");
    for (let evenings = 0; evenings < 366; evenings += 1) {
      expect(await since(slot)).toEqual(previousSlot(evening, zone, new Date(slot.getTime() - 1)));
      await note(slot, "Done");
      slot = nextSlot(evening, zone, slot);
    }
  });

  test("the first one of a day, even if by hand: later ones are for people without it", async () => {
    const morning = new Date("2026-12-02T08:00:00Z");
    await note(day("2026-12-01"), "Done");
    await note(morning, "Done", "eager");
    expect(await since(day("2026-12-02"))).toEqual(day("2026-12-01"));
    await note(day("2026-12-02"), "Done");
    expect(await since(new Date("2026-12-02T20:00:00Z"))).toEqual(day("2026-12-01"));
    expect(await since(day("2026-12-03"))).toEqual(morning);
  });

  test("a day before the first failed one, if none was sent yet", async () => {
    await note(day("2026-12-01"), "Failed");
    await note(day("2026-12-02"), "Missed");
    expect(await since(day("2026-12-03"))).toEqual(day("2026-11-30"));
  });

  test("the last one sent, however long ago: it is not deleted", async () => {
    await client.db.execute(sql`insert into scheduled_task values (${summaryTask}, '2026-01-01')`);
    await note(day("2026-08-01"), "Done");
    await note(day("2026-08-02"), "Done");
    for (const date of ["2026-08-03", "2026-09-01", "2026-12-01"]) await note(day(date), "Failed");
    const clock = new TestClock(new Date("2026-12-01T20:00:00Z"));
    await cleanUp(scheduleOf(client.db, clock, "a"));
    expect(await client.db.$count(run)).toBe(2);
    expect(await since(day("2026-12-02"))).toEqual(day("2026-08-02"));
  });
});
