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

// A worker process for a storm, with many tasks that are always due. Each run writes one row into `effect`, and its writer
// and current owner into `written`. A run retries a failed transaction while it owns the run, so any lost row is a fault
// of the engine.

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
      // Some runs take long, so that a worker that is frozen then mostly wakes too late to write.
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
