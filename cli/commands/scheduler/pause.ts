import { defineCommand } from "../../command.ts";
import { onSchedule, taskArgument, taskNamed } from "../../scheduler.ts";

export default defineCommand({
  args: { task: taskArgument },
  examples: ["svc scheduler pause term-sync"],
  notes: [
    "On every worker: no slot of it is claimed any more. A run that is under way goes on, and --eager runs it all the same.",
  ],
  async run({ task }, io) {
    const name = await taskNamed(task);
    const { pauseTask } = await import("../../../core/schedule/operate.ts");
    const news = await onSchedule(io, (context) => pauseTask(context, name));
    io.stdout.write(news ? `Paused ${name}\n` : `${name} was paused already\n`);
  },
});
