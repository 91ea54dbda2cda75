import { beforeEach, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { run, runFault, team } from "../../drizzle/schema/index.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { everySeconds, scheduleOf } from "../../tests/support/domain/schedule.ts";
import { type Claim, claimDue, claimNow } from "./claims.ts";
import { extendRun, finishRun, releaseRun, whileHeld } from "./runs.ts";

const client = useDatabase(6);
let clock: TestClock;
beforeEach(async () => {
  await client.db.execute(sql`truncate run, run_fault, scheduled_task, team cascade`);
  clock = new TestClock();
});

const task = everySeconds("hourly", 3600);
const as = (owner: string) => scheduleOf(client.db, clock, owner);
const write = (claim: Claim, name: string) =>
  whileHeld(as(claim.owner), claim, 60, async (tx) => {
    await tx.insert(team).values({ name, createdAt: clock.now(), updatedAt: clock.now() });
  });
const teams = async () => (await client.db.select({ name: team.name }).from(team)).map(({ name }) => name);
const rows = () => client.db.select().from(run);
/** `a` claims, is away for the duration of a lease, and `b` takes over. */
const takenOver = async () => {
  const first = await claimNow(as("a"), task);
  clock.advance(30);
  return { first, second: await claimNow(as("b"), task) };
};

describe("a run that was taken over", () => {
  test("commits nothing from its first worker", async () => {
    const { first, second } = await takenOver();
    await expect(write(first, "late")).rejects.toThrow("This worker lost the run");
    await write(second, "in time");
    expect(await teams()).toEqual(["in time"]);
  });

  test("can be renewed, finished and given back only by its new worker", async () => {
    const { first, second } = await takenOver();
    expect(await extendRun(as("a"), first)).toBe(false);
    expect(await finishRun(as("a"), first, { faults: [{ item: "x", reason: "y" }] })).toBe(false);
    await releaseRun(as("a"), first, { reason: "stopped" });
    expect(await rows()).toMatchObject([{ owner: "b", state: "Running" }]);
    expect(await client.db.$count(runFault)).toBe(0);
    expect(await extendRun(as("b"), second)).toBe(true);
    expect(await finishRun(as("b"), second, { faults: [] })).toBe(true);
  });

  test("is not the run of another worker's same attempt, as in a restored database", async () => {
    const claim = await claimNow(as("a"), task);
    expect(await extendRun(as("b"), { ...claim, owner: "b" })).toBe(false);
  });

  test("is not the run of the same worker's earlier attempt", async () => {
    const first = await claimNow(as("a"), task);
    clock.advance(30);
    await claimNow(as("a"), task);
    await expect(write(first, "late")).rejects.toThrow("This worker lost the run");
    expect(await finishRun(as("a"), first, { faults: [] })).toBe(false);
  });
});

describe("a run whose lease has ended", () => {
  test("changes nothing, even if nobody has taken it over yet", async () => {
    const claim = await claimNow(as("a"), task);
    clock.advance(30);
    await expect(write(claim, "late")).rejects.toThrow("This worker lost the run");
    expect(await extendRun(as("a"), claim)).toBe(false);
    expect(await finishRun(as("a"), claim, { faults: [] })).toBe(false);
  });
});

test("a renewed lease lasts for another full term", async () => {
  const claim = await claimNow(as("a"), task);
  for (let third = 0; third < 9; third += 1) {
    clock.advance(10);
    expect(await extendRun(as("a"), claim)).toBe(true);
  }
  clock.advance(29);
  await write(claim, "still here");
  expect(await finishRun(as("a"), claim, { faults: [] })).toBe(true);
  await expect(write(claim, "finished")).rejects.toThrow("This worker lost the run");
});

test("a run that is given back can be taken over at once", async () => {
  const claim = await claimNow(as("a"), task);
  await releaseRun(as("a"), claim, { reason: "stopped" });
  expect(await claimNow(as("b"), task)).toMatchObject({ slot: claim.slot, attempt: 2 });
});

describe("while a transaction of the run is open", () => {
  /** Opens a transaction, does `meanwhile`, and commits. */
  async function during(claim: Claim, meanwhile: (commit: () => void) => Promise<void>): Promise<void> {
    const [begun, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const writing = whileHeld(as(claim.owner), claim, 60, async (tx) => {
      await tx.insert(team).values({ name: "kept", createdAt: clock.now(), updatedAt: clock.now() });
      begun.resolve();
      await end.promise;
    });
    await begun.promise;
    await meanwhile(end.resolve);
    end.resolve();
    await writing;
  }

  test("its lease can be renewed", async () => {
    const claim = await claimNow(as("a"), task);
    await during(claim, async () => expect(await extendRun(as("a"), claim)).toBe(true));
  });

  test("nobody takes it over, or waits for it", async () => {
    await claimDue(as("a"), task);
    clock.advance(3600);
    const claimed = await claimDue(as("a"), task);
    if (!("claim" in claimed)) throw new Error("nothing was due");
    await during(claimed.claim, async () => {
      clock.advance(30);
      expect(await claimDue(as("b"), task)).toEqual({ lookAgain: new Date(clock.now().getTime() + 1000) });
    });
    expect(await claimDue(as("b"), task)).toMatchObject({ claim: { attempt: 2 } });
    expect(await teams()).toEqual(["kept"]);
  });

  test("its end waits, so that none of its effects come after it", async () => {
    const claim = await claimNow(as("a"), task);
    await during(claim, async (commit) => {
      let ended = false;
      const finishing = finishRun(as("a"), claim, { faults: [] }).then(() => {
        ended = true;
      });
      await somebodyWaits(client.db);
      expect([ended, (await rows())[0]?.state]).toEqual([false, "Running"]);
      commit();
      await finishing;
    });
    expect((await rows())[0]?.state).toBe("Done");
  });

  test("PostgreSQL ends the transaction if its process is frozen", async () => {
    const claim = await claimNow(as("a"), task);
    const limits = await whileHeld(as("a"), claim, 60, (tx) =>
      tx.execute(sql`select current_setting('idle_in_transaction_session_timeout') as idle,
        current_setting('statement_timeout') as statement`),
    );
    expect([...limits]).toEqual([{ idle: "30s", statement: "1min" }]);
  });
});

test("a run's result and faults are kept, with the last attempt's reason for each item", async () => {
  const { first, second } = await takenOver();
  expect(first.attempt).toBe(1);
  await client.db.insert(runFault).values({ task: task.name, slot: second.slot, item: "x", reason: "old" });
  const faults = [
    { item: "x", reason: "new" },
    { item: "y", reason: "first" },
    { item: "y", reason: "last" },
  ];
  const result = { done: 1, skipped: 2, failed: 2 };
  expect(await finishRun(as("b"), second, { result, faults })).toBe(true);
  expect(await rows()).toMatchObject([
    { state: "Done", error: null, leaseUntil: null, result, finishedAt: clock.now() },
  ]);
  const kept = await client.db
    .select()
    .from(runFault)
    .where(eq(runFault.task, task.name))
    .orderBy(runFault.item);
  expect(kept.map(({ item, reason }) => [item, reason])).toEqual([
    ["x", "new"],
    ["y", "last"],
  ]);
});

test("a thousand faults of a run are kept", async () => {
  const claim = await claimNow(as("a"), task);
  const faults = Array.from({ length: 1001 }, (_, i) => ({ item: `item ${i}`, reason: "bad" }));
  expect(await finishRun(as("a"), claim, { faults })).toBe(true);
  expect(await client.db.$count(runFault, eq(runFault.slot, claim.slot))).toBe(1000);
});

test("a failed run records the reason", async () => {
  const claim = await claimNow(as("a"), task);
  expect(await finishRun(as("a"), claim, { error: "no formula", faults: [] })).toBe(true);
  expect(await rows()).toMatchObject([{ state: "Failed", error: "no formula" }]);
});
