import { sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { Conflict } from "../../../platform/errors.ts";
import { openWorker } from "../../../worker/open.ts";
import type { Work } from "../../../worker/run.ts";
import { pause } from "../../../worker/time.ts";
import { work } from "../../../worker/worker.ts";
import { skewClock } from "../process/skewed_clock.ts";
import { everySeconds } from "./schedule.ts";
import { noteWriter, stormLeaseSeconds, stormPeriodMilliseconds, stormTasks } from "./schedule_storm.ts";

// A worker as a process of its own, for a storm: many tasks that are due all the time. Each run writes one row into
// `effect`, and who wrote it beside whose the run was at that moment into `written`. A run whose transaction fails tries
// it again, as long as it is its own: what is lost is lost by the engine.

skewClock(Number(process.env.SVC_TEST_SKEW));

const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
const deps = (await openWorker({ environment: process.env, patient: true }, stop.signal))!;
const { owner } = deps.schedule();

async function write(tx: Transaction, task: string, slot: Date): Promise<void> {
  const isIt = sql`task = ${task} and slot = ${slot.toISOString()}::timestamptz`;
  await tx.execute(sql`insert into effect select task, slot from run where ${isIt} on conflict do nothing`);
  await noteWriter(tx, { task, slot, owner });
}

const works = stormTasks.map((name): Work => ({
  definition: everySeconds(name, stormPeriodMilliseconds / 1000, 60),
  task: {
    async run({ slot, signal, transaction }) {
      // Now and then it takes long: then a worker that is frozen is so mostly before it writes, and wakes too late.
      if (Math.random() < 1 / 16) await Bun.sleep(300);
      for (;;) {
        try {
          await transaction((tx) => write(tx, name, slot));
          return { done: 1, skipped: 0, failed: 0 };
        } catch (error) {
          if (signal.aborted || error instanceof Conflict) throw error;
          await pause(50, signal);
        }
      }
    },
  },
}));
await work(
  { ...deps, schedule: () => ({ ...deps.schedule(), leaseSeconds: stormLeaseSeconds }) },
  works,
  stop.signal,
);
await deps.close();
process.exit(0);
