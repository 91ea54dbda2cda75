import { defineCommand } from "../../../command.ts";
import { clientArgs, incidentArg, wordsArg } from "../../../incident/args.ts";
import { taskAddCommand } from "../../../incident/task.ts";

export default defineCommand({
  summary: "Add a task to an incident",
  args: {
    ...wordsArg("TEXT", "What is to be done"),
    ...incidentArg,
    owner: { type: "string", metavar: "USER", description: "Who answers for it" },
    assign: {
      type: "string",
      multiple: true,
      metavar: "USER",
      description: "Who does it; may be repeated",
    },
    due: {
      type: "string",
      metavar: "TIME",
      description: "When: 2h, 3d, 17:00, 2026-11-20 (default: in a day)",
    },
    ...clientArgs,
  },
  examples: ['svc incident task add "Order new disks" --assign dana --due 2d'],
  notes: ["It prints the number of the task."],
  run: (options, io) => taskAddCommand(options, io),
});
