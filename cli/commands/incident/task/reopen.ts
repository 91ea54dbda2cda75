import { defineCommand } from "../../../command.ts";
import { clientArgs, tasksArg } from "../../../incident/args.ts";

export default defineCommand({
  summary: "Reopen tasks",
  args: { ...tasksArg, ...clientArgs },
  examples: ["svc incident task reopen 12"],
  async run(options, io) {
    const { taskStatusCommand } = await import("../../../incident/task.ts");
    await taskStatusCommand("Open", options, io);
  },
});
