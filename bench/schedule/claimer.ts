import { claimDue } from "../../core/schedule/claim.ts";
import { databaseClock } from "../../core/schedule/database_clock.ts";
import { finishRun } from "../../core/schedule/finish.ts";
import { openDatabase } from "../../drizzle/client.ts";

// Claims and finishes slots of tasks of which more are due than it can do, beside others that do the same.

const { SVC_DATABASE_URL = "", BENCH_TASKS = "1" } = process.env;
const connections = 8;
const { db } = openDatabase(SVC_DATABASE_URL, connections);
const context = {
  db,
  databaseClock,
  config: { timezone: "UTC" },
  owner: String(process.pid),
  leaseSeconds: 30,
};
const works = Array.from({ length: Number(BENCH_TASKS) }, (_, i) => ({
  ...{ name: `slot-${i}`, timing: { every: 0.05 }, showsTime: false, timeoutSeconds: 60 },
}));

process.on("SIGTERM", () => process.exit(0));
process.stdin.on("end", () => process.exit(0)).resume();

async function claimAndFinish(work: (typeof works)[number]): Promise<void> {
  const claimed = await claimDue(context, work, new Date());
  if ("claim" in claimed) await finishRun(context, claimed.claim, { faults: [] });
}

async function race(): Promise<void> {
  for (;;) await claimAndFinish(works[Math.floor(Math.random() * works.length)]!);
}

// From now on they are known, and due.
for (const work of works) await claimAndFinish(work);
console.log("ready: claimer");
await Promise.all(Array.from({ length: connections }, race));
