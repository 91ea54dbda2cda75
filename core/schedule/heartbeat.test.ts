import { expect, test } from "bun:test";
import { openDatabase } from "../../drizzle/client.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { createTestDatabase } from "../../tests/support/database/database.ts";
import { scheduleOf } from "../../tests/support/domain/schedule.ts";
import { beat, lookAround, signOff } from "./heartbeat.ts";

test("a worker sees the database's time and the live workers", async () => {
  await using database = await createTestDatabase();
  const { db, close } = openDatabase(database.url, 2);
  const clock = new TestClock();
  const as = (owner: string) => scheduleOf(db, clock, owner);
  const says = (owner: string) => beat(as(owner), { host: "here", pid: 1 });
  const others = async () => {
    const { now, workers } = await lookAround(as("a"));
    expect(now).toEqual(clock.now());
    return workers.toSorted();
  };
  expect(await others()).toEqual([]);
  for (const owner of ["a", "b", "c"]) await says(owner);
  expect(await others()).toEqual(["a", "b", "c"]);
  await signOff(as("c"));
  clock.advance(29);
  await says("a");
  expect(await others()).toEqual(["a", "b"]);
  clock.advance(1);
  expect(await others()).toEqual(["a"]);
  await close();
});
