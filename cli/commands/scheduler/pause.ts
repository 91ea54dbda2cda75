import { defineCommand } from "../../command.ts";
import { onSchedule, taskArgument, taskNamed } from "../../scheduler.ts";

export default defineCommand({
  summary: "Pause a task",
  args: { task: taskArgument },
  examples: ["svc scheduler pause term-sync"],
  notes: ["Applies to all workers. A current run continues, and --eager still runs the task."],
  async run({ task }, io) {
    const name = await taskNamed(task);
    const { pauseTask } = await import("../../../core/schedule/operate.ts");
    const changed = await onSchedule(io, (context) => pauseTask(context, name));
    io.stdout.write(changed ? `Paused ${name}\n` : `${name} is already paused\n`);
  },
});
