import { clientArgs, tasksArg } from "../../../client/incident_args.ts";
import { defineCommand } from "../../../command.ts";

export default defineCommand({
  summary: "Mark tasks as done",
  args: { ...tasksArg, ...clientArgs },
  examples: ["svc incident task done 12"],
  async run(options, io) {
    const { taskStatusCommand } = await import("../../../client/incident_task.ts");
    await taskStatusCommand("Resolved", options, io);
  },
});
