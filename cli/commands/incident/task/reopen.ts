import { defineCommand } from "../../../command.ts";
import { clientArgs, tasksArg } from "../../../incident/args.ts";
import { taskStatusCommand } from "../../../incident/task.ts";

export default defineCommand({
  summary: "Reopen tasks",
  args: { ...tasksArg, ...clientArgs },
  examples: ["svc incident task reopen 12"],
  run: (options, io) => taskStatusCommand("Open", options, io),
});
