import { PgBoss } from "pg-boss";

// pg-boss: its schedule has no period under a minute, so each job sends the next one. It looks for due jobs every half
// second at most, with separate pollers.

const { BENCH_TASKS, DATABASE_URL } = process.env;
const tasks = Number(BENCH_TASKS);
const period = 1000;
const nextSlot = (behind) => (Math.floor(Math.max(behind, Date.now()) / period) + 1) * period;

const boss = new PgBoss({
  connectionString: DATABASE_URL,
  schema: "bench_boss",
  max: tasks + 2,
  schedule: false,
});
boss.on("error", (error) => console.error(error));
await boss.start();
await boss.createQueue("tick");
const send = (task, slot) => boss.send("tick", { task, slot }, { startAfter: new Date(slot), retryLimit: 0 });
const handle = async ([{ data }]) => {
  const { task, slot } = data;
  await boss
    .getDb()
    .executeSql("insert into tick values ($1, to_timestamp($2 / 1000.0), $3)", [task, slot, process.pid]);
  await send(task, nextSlot(slot));
};
await boss.work("tick", { pollingIntervalSeconds: 0.5, localConcurrency: tasks }, handle);
if (process.env.BENCH_FIRST === "yes")
  for (let task = 0; task < tasks; task += 1) await send(`tick-${task}`, nextSlot(0));
const end = () => boss.stop({ graceful: true, timeout: 2000 }).finally(() => process.exit(0));
process.on("SIGTERM", end);
process.stdin.on("end", end).resume();
console.log("ready: pg-boss");
