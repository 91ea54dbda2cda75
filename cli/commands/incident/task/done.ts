import { defineCommand } from "../../../command.ts";
import { clientArgs, tasksArg } from "../../../incident/args.ts";

export default defineCommand({
  summary: "Mark tasks as done",
  args: { ...tasksArg, ...clientArgs },
  examples: ["svc incident task done 12"],
  async run(options, io) {
    const { taskStatusCommand } = await import("../../../incident/task.ts");
    await taskStatusCommand("Resolved", options, io);
  },
});
