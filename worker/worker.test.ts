import { expect, spyOn, test } from "bun:test";
import { sql } from "drizzle-orm";
import { readConfig } from "../core/config.ts";
import { createLog } from "../platform/log.ts";
import { TestClock } from "../tests/support/clock.ts";
import { useDatabase } from "../tests/support/database/database.ts";
import { everySeconds, scheduleOf } from "../tests/support/domain/schedule.ts";
import type { WorkerDeps } from "./deps.ts";
import { DatabaseTime } from "./time.ts";
import { workNow } from "./worker.ts";

const client = useDatabase(3);
const clock = new TestClock();

/** How often connections are replaced during a worker's first heartbeat. */
async function reopened(schedule: WorkerDeps["schedule"]): Promise<number> {
  let times = 0;
  const deps: WorkerDeps = {
    schedule,
    db: () => client.db,
    time: new DatabaseTime(),
    config: readConfig({}),
    log: createLog("silent"),
    plugins: { ofType: () => [], find: () => undefined },
    reopen: () => {
      times += 1;
    },
  };
  const work = {
    definition: everySeconds("tested", 3600, 60),
    task: { run: () => Promise.reject(new Error()) },
  };
  await expect(workNow(deps, work, new AbortController().signal)).rejects.toThrow();
  return times;
}

test("replaces connections that do not answer", async () => {
  await client.db.transaction(async (tx) => {
    await tx.execute(sql`lock table worker`);
    expect(await reopened(() => scheduleOf(client.db, clock, "a"))).toBe(1);
  });
});

test("keeps connections whose answer was late because the process was suspended", async () => {
  const now = performance.now.bind(performance);
  let stoodStill = 0;
  using _ = spyOn(performance, "now").mockImplementation(() => now() + stoodStill);
  const refused = () => {
    stoodStill = 60_000;
    throw new Error("refused");
  };
  expect(await reopened(refused)).toBe(0);
});
