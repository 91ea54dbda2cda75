import { databaseClock } from "../../core/database_clock.ts";
import { claimDue } from "../../core/schedule/claims.ts";
import { finishRun } from "../../core/schedule/runs.ts";
import { previousSlot } from "../../core/schedule/slots.ts";
import { openDatabase, openSql } from "../../drizzle/client.ts";

// Claims and finishes slots of more due tasks than it can process, concurrently with other claimers; with
// BENCH_WAY=bare it only inserts a row for each.

const { SVC_DATABASE_URL = "", BENCH_TASKS = "1", BENCH_WAY } = process.env;
const connections = 8;
const owner = String(process.pid);
const works = Array.from({ length: Number(BENCH_TASKS) }, (_, i) => ({
  name: `slot-${i}`,
  timing: { every: 0.05 },
  showsTime: false,
  timeoutSeconds: 60,
}));
type Work = (typeof works)[number];

process.on("SIGTERM", () => process.exit(0));
process.stdin.on("end", () => process.exit(0)).resume();

function claimingAndFinishing(): (work: Work) => Promise<void> {
  const { db } = openDatabase(SVC_DATABASE_URL, connections);
  const context = { db, databaseClock, config: { timezone: "UTC" }, owner, leaseSeconds: 30 };
  return async (work) => {
    const claimed = await claimDue(context, work, new Date());
    if ("claim" in claimed) await finishRun(context, claimed.claim, { faults: [] });
  };
}

function inserting(): (work: Work) => Promise<void> {
  const sql = openSql(SVC_DATABASE_URL, { max: connections });
  return async ({ name, timing }) => {
    const slot = previousSlot(timing, "UTC", new Date());
    await sql`
      insert into run (task, slot, state, trigger, owner, started_at, finished_at)
      values (${name}, ${slot}, 'Done', 'schedule', ${owner}, now(), now()) on conflict do nothing`;
  };
}

const step = BENCH_WAY === "bare" ? inserting() : claimingAndFinishing();

async function race(): Promise<void> {
  for (;;) await step(works[Math.floor(Math.random() * works.length)]!);
}

// Makes the tasks known, so that they become due.
for (const work of works) await step(work);
console.log("ready: claimer");
await Promise.all(Array.from({ length: connections }, race));
