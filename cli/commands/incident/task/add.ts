import { defineCommand } from "../../../command.ts";
import { clientArgs, incidentArg, textArg, textArgs } from "../../../incident/args.ts";
import { taskAddCommand } from "../../../incident/task.ts";

export default defineCommand({
  summary: "Add a task to an incident",
  args: {
    ...textArg,
    ...incidentArg,
    ...textArgs("what to do"),
    owner: { type: "string", metavar: "USER", description: "Person responsible for it" },
    assign: {
      type: "string",
      multiple: true,
      metavar: "USER",
      description: "Person to do it; can be repeated",
    },
    due: {
      type: "string",
      metavar: "TIME",
      description: "When it is due: 2h, 3d, 17:00, 2026-11-20 (default: in a day)",
    },
    ...clientArgs,
  },
  examples: ['svc incident task add "Order new disks" --assign dana --due 2d'],
  notes: ["Prints the number of the task."],
  run: (options, io) => taskAddCommand(options, io),
});
