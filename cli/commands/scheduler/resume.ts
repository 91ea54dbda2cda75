import { defineCommand } from "../../command.ts";
import { onSchedule, taskArgument, taskNamed } from "../../scheduler.ts";

export default defineCommand({
  args: { task: taskArgument },
  examples: ["svc scheduler resume term-sync"],
  notes: ["On every worker. The slots of the pause are not made up for."],
  async run({ task }, io) {
    const name = await taskNamed(task);
    const { resumeTask } = await import("../../../core/schedule/operate.ts");
    const news = await onSchedule(io, (context) => resumeTask(context, name));
    io.stdout.write(news ? `Resumed ${name}\n` : `${name} was not paused\n`);
  },
});
