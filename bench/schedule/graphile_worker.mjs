import { createRequire } from "node:module";

// graphile-worker: its crontab has no period under a minute, so each job adds the next one. It looks for due jobs every
// `pollInterval`; a hundredth of a second instead of its default of two seconds.

const { BENCH_PACKAGES, BENCH_TASKS, DATABASE_URL } = process.env;
const { run } = createRequire(`${BENCH_PACKAGES}/package.json`)("graphile-worker");
const tasks = Number(BENCH_TASKS);
const period = 1000;
const nextSlot = (behind) => (Math.floor(Math.max(behind, Date.now()) / period) + 1) * period;

const add = (addJob, task, slot) =>
  addJob("tick", { task, slot }, { runAt: new Date(slot), jobKey: `${task} ${slot}`, maxAttempts: 1 });
const runner = await run({
  connectionString: DATABASE_URL,
  concurrency: tasks,
  maxPoolSize: tasks + 2,
  pollInterval: 10,
  noHandleSignals: true,
  taskList: {
    async tick({ task, slot }, { query, addJob }) {
      await query("insert into tick values ($1, to_timestamp($2 / 1000.0), $3)", [task, slot, process.pid]);
      await add(addJob, task, nextSlot(slot));
    },
  },
});
if (process.env.BENCH_FIRST === "yes")
  for (let task = 0; task < tasks; task += 1) await add(runner.addJob, `tick-${task}`, nextSlot(0));
const end = () => runner.stop().finally(() => process.exit(0));
process.on("SIGTERM", end);
process.stdin.on("end", end).resume();
console.log("ready: graphile-worker");
