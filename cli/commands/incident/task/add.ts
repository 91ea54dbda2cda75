import { clientArgs, incidentArg } from "../../../client/incident_args.ts";
import { defineCommand } from "../../../command.ts";

export default defineCommand({
  summary: "Add a task to an incident",
  args: {
    words: {
      ...{ type: "positional", required: false, multiple: true, metavar: "TEXT" },
      description: "What is to be done. A first word such as INC-7 names the incident",
    },
    ...incidentArg,
    owner: { type: "string", metavar: "USER", description: "Who answers for it" },
    assign: {
      ...{ type: "string", multiple: true, metavar: "USER" },
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
  async run(options, io) {
    const { taskAddCommand } = await import("../../../client/incident_task.ts");
    await taskAddCommand(options, io);
  },
});
