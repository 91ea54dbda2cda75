import { openWorker } from "../../../worker/open.ts";
import type { Work } from "../../../worker/run.ts";
import type { TaskContext } from "../../../worker/task.ts";
import { worksOf } from "../../../worker/tasks/index.ts";
import { work } from "../../../worker/worker.ts";
import { skewClock } from "../process/skewed_clock.ts";
import { reminderTasks } from "./reminder_storm.ts";
import { everySeconds } from "./schedule.ts";
import { noteWriter, stormLeaseSeconds } from "./schedule_storm.ts";

// A worker process for a storm: the real reminder tasks, due twice a second instead of once an hour. They also record in
// each transaction which worker writes.

skewClock(Number(process.env.SVC_TEST_SKEW));

const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
const deps = (await openWorker({ environment: process.env, patient: true }, stop.signal))!;
const { owner } = deps.schedule();

const works = worksOf().flatMap(({ definition: { name }, task }): Work[] => {
  if (!reminderTasks.includes(name)) return [];
  const noting = ({ slot, transaction }: TaskContext): TaskContext["transaction"] =>
    async function noted(writing) {
      // Some runs take long, so that a worker that is frozen then wakes too late.
      if (Math.random() < 1 / 8) await Bun.sleep(300);
      return await transaction(async (tx) => {
        const value = await writing(tx);
        await noteWriter(tx, { task: name, slot, owner });
        return value;
      });
    };
  const run = (context: TaskContext) => task.run({ ...context, transaction: noting(context) });
  return [{ definition: everySeconds(name, 0.5, 60), task: { run } }];
});
await work(
  { ...deps, schedule: () => ({ ...deps.schedule(), leaseSeconds: stormLeaseSeconds }) },
  works,
  stop.signal,
);
await deps.close();
process.exit(0);
