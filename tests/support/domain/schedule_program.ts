import { openSql } from "../../../drizzle/client.ts";
import { openWorker } from "../../../worker/open.ts";
import type { ScheduledTask } from "../../../worker/task.ts";
import { work } from "../../../worker/worker.ts";
import { everySeconds } from "./schedule.ts";

// A worker process for tests, with one task that is due every second. A run inserts a row into the table `begun`, takes
// SVC_TEST_TAKES milliseconds, and then writes a row into `effect` in a transaction of the run, unless a key of that table
// says that an earlier attempt has done so. Its lease is short.

const { SVC_TEST_NOTES_URL = "", SVC_TEST_TAKES = "0" } = process.env;
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
const deps = (await openWorker({ environment: process.env, patient: true }, stop.signal))!;
const notes = openSql(SVC_TEST_NOTES_URL, { max: 1 });
const task: ScheduledTask = {
  async run({ slot, transaction }) {
    await notes`insert into begun (slot, pid) values (${slot.toISOString()}::timestamptz, ${process.pid})`;
    await Bun.sleep(Number(SVC_TEST_TAKES));
    await transaction(async (tx) => {
      await tx.execute(
        `insert into effect (slot, pid) values ('${slot.toISOString()}'::timestamptz, ${process.pid}) on conflict do nothing`,
      );
    });
    return { done: 1, skipped: 0, failed: 0 };
  },
};
const tick = { definition: everySeconds("tick", 1, 60), task };
await work({ ...deps, schedule: () => ({ ...deps.schedule(), leaseSeconds: 2 }) }, [tick], stop.signal);
await deps.close();
await notes.end();
// A run that was given back may still be sleeping.
process.exit(0);
