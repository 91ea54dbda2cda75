import { defineCommand } from "../../../command.ts";
import { clientArgs, incidentCheckArg } from "../../../incident/args.ts";
import { taskAssignCommand } from "../../../incident/task.ts";

export default defineCommand({
  summary: "Assign a task to people",
  args: {
    words: {
      type: "positional",
      multiple: true,
      metavar: "TASK USER...",
      description: "The number of the task, then the people to do it",
    },
    ...incidentCheckArg,
    remove: { type: "boolean", description: "Unassign them instead" },
    ...clientArgs,
  },
  examples: ["svc incident task assign 12 dana", "svc incident task assign 12 dana --remove"],
  run: (options, io) => taskAssignCommand(options, io),
});
