import { sql } from "drizzle-orm";
import { openWorker } from "../../worker/open.ts";
import type { Work } from "../../worker/run.ts";
import { work } from "../../worker/worker.ts";

// A worker of ours with test tasks that record when they started; with BENCH_HANGS they never end.

const { BENCH_TASKS = "1", BENCH_EVERY = "1", BENCH_LEASE = "30", BENCH_HANGS } = process.env;
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
process.stdin.on("end", () => stop.abort()).resume();
const deps = (await openWorker({ environment: process.env, patient: false }, stop.signal))!;

function tick(name: string): Work {
  return {
    definition: { name, timing: { every: Number(BENCH_EVERY) }, showsTime: false, timeoutSeconds: 600 },
    task: {
      async run({ slot, transaction }) {
        await transaction((tx) =>
          tx.execute(sql`insert into tick values (${name}, ${slot.toISOString()}, ${process.pid})`),
        );
        if (BENCH_HANGS) await new Promise(() => {});
        return { done: 1, skipped: 0, failed: 0 };
      },
    },
  };
}

const names = Array.from({ length: Number(BENCH_TASKS) }, (_, i) => `tick-${i}`);
console.log("ready: worker");
await work(
  { ...deps, schedule: () => ({ ...deps.schedule(), leaseSeconds: Number(BENCH_LEASE) }) },
  names.map(tick),
  stop.signal,
  100,
);
await deps.close();
process.exit(0);
