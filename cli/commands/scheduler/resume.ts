import { defineCommand } from "../../command.ts";
import { onSchedule, taskArgument, taskNamed } from "../../scheduler.ts";

export default defineCommand({
  summary: "Resume a paused task",
  args: { task: taskArgument },
  examples: ["svc scheduler resume term-sync"],
  notes: ["Applies to all workers. Slots that were due during the pause are skipped."],
  async run({ task }, io) {
    const name = await taskNamed(task);
    const { resumeTask } = await import("../../../core/schedule/operate.ts");
    const changed = await onSchedule(io, (context) => resumeTask(context, name));
    io.stdout.write(changed ? `Resumed ${name}\n` : `${name} is not paused\n`);
  },
});
