import { expect, test } from "bun:test";
import { run } from "../../drizzle/schema/index.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { everySeconds, scheduleOf } from "../../tests/support/domain/schedule.ts";
import { claimExpired, claimNow } from "./claims.ts";
import { extendRun } from "./runs.ts";

const client = useDatabase(3);

test("a run whose lease was renewed after it was read is not taken over", async () => {
  const { db } = client;
  const clock = new TestClock();
  const task = everySeconds("hourly", 3600);
  const owner = scheduleOf(db, clock, "a");
  const claim = await claimNow(owner, task);
  const [before] = await db.select().from(run);
  const { slot, attempt, trigger, leaseUntil } = before!;
  clock.advance(29);
  expect(await extendRun(owner, claim)).toBe(true);
  clock.advance(1);
  const seen = { slot, attempt, trigger, leaseUntil: leaseUntil! };
  const take = () =>
    db.transaction((tx) => claimExpired(tx, scheduleOf(db, clock, "b"), task, seen, clock.now()));
  expect(await take()).toBeUndefined();
  expect(await db.select().from(run)).toMatchObject([{ owner: "a", attempt: 1, state: "Running" }]);
  clock.advance(29);
  expect(await take()).toMatchObject({ owner: "b", attempt: 2 });
});
