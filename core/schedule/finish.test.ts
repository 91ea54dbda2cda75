import { beforeEach, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { run, runFault } from "../../drizzle/schema/index.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { everySeconds, scheduleOf } from "../../tests/support/domain/schedule.ts";
import { until } from "../../tests/support/process/until.ts";
import { databaseClock } from "../database_clock.ts";
import { type Claim, claimNow, type ScheduleContext } from "./claims.ts";
import { extendRun, finishRun } from "./runs.ts";

const client = useDatabase(6);
beforeEach(() => client.db.execute(sql`truncate run, run_fault, scheduled_task`).then(() => {}));

const task = everySeconds("hourly", 3600);
const states = async () => (await client.db.select({ state: run.state }).from(run)).map(({ state }) => state);

/** Ends the run while one of its transactions is open, and commits that once `meanwhile` is done. */
async function endingBeside(
  context: ScheduleContext,
  claim: Claim,
  faults: { item: string; reason: string }[],
  meanwhile: () => Promise<unknown>,
): Promise<boolean> {
  const [held, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const writing = client.db.transaction(async (tx) => {
    await tx.select({ slot: run.slot }).from(run).where(eq(run.task, task.name)).for("key share");
    held.resolve();
    await commit.promise;
  });
  await held.promise;
  const ending = finishRun(context, claim, { faults });
  await somebodyWaits(client.db);
  await meanwhile();
  commit.resolve();
  await writing;
  return ending;
}

test.each([[[]], [[{ item: "x", reason: "bad" }]]])(
  "renewing the lease of a run that waits to be ended changes nothing; faults %j",
  async (faults) => {
    const clock = new TestClock();
    const context = scheduleOf(client.db, clock, "a");
    const claim = await claimNow(context, task);
    const renew = async () => expect(await extendRun(context, claim)).toBe(true);
    expect(await endingBeside(context, claim, faults, renew)).toBe(true);
    expect(await states()).toEqual(["Done"]);
    expect(await client.db.$count(runFault)).toBe(faults.length);
  },
);

test.each([[[]], [[{ item: "x", reason: "bad" }]]])(
  "a run is lost if its lease expires while it waits to be ended; faults %j",
  async (faults) => {
    const config = { timezone: "UTC" };
    const context = { db: client.db, databaseClock, config, owner: "a", leaseSeconds: 2 };
    const claim = await claimNow(context, task);
    const ended = () =>
      until(
        "the lease to end",
        async () => (await client.db.$count(run, sql`lease_until < clock_timestamp()`)) > 0,
      );
    expect(await endingBeside(context, claim, faults, ended)).toBe(false);
    expect(await states()).toEqual(["Running"]);
    expect(await client.db.$count(runFault)).toBe(0);
  },
);
