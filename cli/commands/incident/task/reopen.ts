import { defineCommand } from "../../../command.ts";
import { clientArgs, incidentCheckArg, tasksArg } from "../../../incident/args.ts";
import { taskStatusCommand } from "../../../incident/task.ts";

export default defineCommand({
  summary: "Reopen tasks",
  args: { ...tasksArg, ...incidentCheckArg, ...clientArgs },
  examples: ["svc incident task reopen 12"],
  run: (options, io) => taskStatusCommand("Open", options, io),
});
