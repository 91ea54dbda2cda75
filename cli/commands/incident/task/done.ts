import { defineCommand } from "../../../command.ts";
import { clientArgs, incidentCheckArg, tasksArg } from "../../../incident/args.ts";
import { taskStatusCommand } from "../../../incident/task.ts";

export default defineCommand({
  summary: "Mark tasks as done",
  args: { ...tasksArg, ...incidentCheckArg, ...clientArgs },
  examples: ["svc incident task done 12"],
  run: (options, io) => taskStatusCommand("Resolved", options, io),
});
